"""Which server, as whom, and trusted by what: kubeconfigs and kubectl's flags as kubectl understands them.

For the command line, which has 0.1 s in all: nothing is imported but the standard library and PyYAML. The controller
has kubernetes-asyncio for this (``rollout_lws.kube.connection``); both are told the same by the same kubeconfig.
"""
