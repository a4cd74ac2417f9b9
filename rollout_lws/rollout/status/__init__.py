"""The Rollout's status: conditions, counts, the BatchRelease, and when a status write is worth it."""
