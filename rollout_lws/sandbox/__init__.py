"""A cluster in one process: an API server over HTTP, and the controllers and kubelets behind it. It knows nothing of
releases; demo, tests and ``rollout-lws sandbox`` run on it.
"""
