"""Taking rollout-lws off a cluster: the Rollouts first, while a controller gives things back, then the rest."""
