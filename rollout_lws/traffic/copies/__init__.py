"""Objects that a release makes as copies of the user's, and leaves the user's alone."""
