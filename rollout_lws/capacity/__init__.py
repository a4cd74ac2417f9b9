"""Where the groups of the new version come from, by ``CapacityStrategy``: ``extra_workload`` (and blue-green),
``in_place`` and ``surge``.

``table`` finds the strategy of a plan or of a release on record; ``known`` lists them for commands that must not load
the API's models. No other package compares capacities. What strategies are made of: ``batches`` and ``weights`` (how
many groups and requests a step asks for), ``canary`` (the second workload), ``partition_update`` (windows in the stable
one), ``batch_release`` (Kruise's record).
"""
