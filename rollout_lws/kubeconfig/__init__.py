"""Reads kubeconfigs and kubectl's flags as kubectl does: which server, which user, which CA.

For the command line, which has 0.1 s in total: imports nothing but the standard library and PyYAML. The controller uses
kubernetes-asyncio instead (``rollout_lws.kube.connection``); both interpret the same kubeconfig alike.
"""
