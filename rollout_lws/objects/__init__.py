"""Kubernetes objects as partial structs, each with only the members that rules read, and writes as values (``writes``).

``resources`` has all kinds with their API paths, ``permissions`` what a 403 means, ``merge`` and ``json_patch`` how a
patch changes an object.
"""
