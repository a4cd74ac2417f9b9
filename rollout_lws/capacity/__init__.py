"""Where the groups of the new version come from, by ``CapacityStrategy``, one file each: a second workload
(``extra_workload``, ``blue_green``) or the stable one (``in_place``, ``surge``).

``table`` finds the strategy of a plan or of a release on record; ``known`` lists them for commands that must not load
the API's models. No other package compares capacities. What strategies are made of: ``batches`` and ``weights`` (how
many groups and requests a step asks for), ``partition_update`` (windows in the stable workload), ``batch_release``
(Kruise's record).
"""
