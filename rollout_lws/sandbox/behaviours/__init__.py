"""The controllers of the embedded cluster: Kubernetes' and LeaderWorkerSet's, small and deterministic."""
