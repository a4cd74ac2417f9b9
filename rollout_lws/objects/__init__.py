"""Kubernetes objects as partial structs, each with only the members that rules read, and writes as values.

``resources`` has all kinds with their API paths, ``released`` the labels of the pods of each kind that can be released.
Structs are in ``meta`` (metadata), ``workloads`` (StatefulSets, pods, endpoints, Events) and ``kueue``. ``writes`` are
the requests that a decision asks for, ``json_patch`` computes patches, ``owners`` reads managedFields, ``permissions``
explains a 403. Values and their encodings: ``quantities``, ``scaling``, ``spelling``, ``go_json`` and ``codec``.
"""
