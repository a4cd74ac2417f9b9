"""One class for each kind of routing object, and all those of a Rollout."""
