"""uninstall: detaches Rollouts from their LeaderWorkerSets and prints the commands that delete the installation."""
