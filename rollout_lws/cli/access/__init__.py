"""The command line's API client: lean, because `get` has a budget of 0.12 s.

The controller's own client (``rollout_lws.kube``) takes too long to import.
"""
