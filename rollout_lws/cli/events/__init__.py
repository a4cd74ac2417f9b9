"""events: what happened to a release, in order."""
