"""LeaderWorkerSet's controllers and webhooks."""
