"""One released workload at one moment, whatever its kind: ``groups`` and when they are ready, ``hold``, ``revisions``,
``trouble`` (why a group is not ready). Functions of ``Facts``; what differs between kinds is in ``targets``.
"""
