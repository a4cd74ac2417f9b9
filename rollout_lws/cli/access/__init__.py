"""The command line's way to an API server: lean, because `get` has 0.16 s in all.

The controller's own edge (``rollout_lws.kube``) takes too long to load. Understood is all that kubectl understands.
"""
