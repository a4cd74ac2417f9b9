"""events: the Events of a release, in order."""
