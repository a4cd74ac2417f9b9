"""The kinds of workloads that a Rollout can release, one file each.

``target`` has the protocol that they implement, ``table`` lists them.

What is the same for all kinds (groups and their readiness, the hold, revisions) is in ``workload``.
"""
