"""lint: what the controller would refuse of manifests, and what it would accept and a person would regret, offline.

Files are read with the positions of their members (``documents``), sorted into objects (``manifests``), given the shape
that an API server would give them (``schema_check``), and judged by the controller's own rules as one snapshot
(``file_snapshot``).
"""
