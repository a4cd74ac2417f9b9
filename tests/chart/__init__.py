"""The chart says what the command line installs, and refuses what that refuses."""
