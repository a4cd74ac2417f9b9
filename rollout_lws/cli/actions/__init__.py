"""What people ask of a release, and what they do to its LeaderWorkerSet."""
