"""init: proposes a Rollout for a workload that exists in a cluster or in files."""
