"""get: one release as header, steps and tree, or a list of all Rollouts; once, or with -w until it ends."""
