"""What a cluster needs to release LeaderWorkerSets: as manifests, and applied."""
