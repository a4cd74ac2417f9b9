"""The guard: an admission webhook against edits whose damage the controller could only repair afterwards.

``workloads`` and ``rollouts`` decide on an edit, by the controller's own rules, and ``judge`` runs them on the caches;
``review`` is the wire format. ``certificates`` and ``bundle`` decide how API servers get to trust the guard. All of
these are pure. Around them, ``server`` listens, ``ca_bundle_controller`` writes, and ``guard`` wires them together.
"""
