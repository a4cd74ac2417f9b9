"""Commands that act on a release: requests to the controller, and edits of the LeaderWorkerSet."""
