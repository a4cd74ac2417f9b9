"""Taking Rollouts off their LeaderWorkerSets, and the commands that delete the installation."""
