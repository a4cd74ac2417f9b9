"""lint: checks manifests offline, for what the controller would refuse and for mistakes that it would accept.

Files are read with the positions of their fields (``documents``), sorted into objects (``manifests``), checked and
defaulted as an API server would (``schema_check``), and judged by the controller's own rules as one snapshot
(``file_snapshot``).
"""
