"""The kinds of workloads that a Rollout can release, one file each.

``target`` has the protocol that they implement, ``table`` lists them. A further kind needs its ``Resource`` in
``objects.resources``, the labels of its pods in ``objects.released``, a file here with its struct and its
``VersionFormat`` and their lines in ``table``, and a rule in the guard's webhooks
(``cli/install/templates/guard.yaml``), and its pods in the policy beside it.

What is the same for all kinds (groups and their readiness, the hold, revisions) is in ``workload``.
"""
