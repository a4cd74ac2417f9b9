"""What the Rollout tells: status, conditions, counts and the BatchRelease, and when that is worth a write."""
