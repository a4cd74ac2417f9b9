"""The guard: an admission webhook that keeps edits from doing harm which a controller could only mend afterwards.

``workloads`` and ``rollouts`` say what becomes of an edit, by the rules that the controller has, and ``judge`` asks
them with what the caches know; ``review`` is the wire format. ``certificates``, ``rotation``, ``bundle`` and
``backoff`` decide how API servers come to trust it. These are pure. Around them ``server`` listens,
``ca_bundle_controller`` writes, and ``guard`` puts them together.
"""
