"""What makes the embedded cluster behave: Kubernetes' and LeaderWorkerSet's controllers, small and deterministic."""
