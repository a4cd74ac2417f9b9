"""The command line's requests to an API server: lean, because `get` has 0.12 s in all.

The controller's own edge (``rollout_lws.kube``) takes too long to load.
"""
