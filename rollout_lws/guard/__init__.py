"""The guard: an admission webhook that keeps edits from doing harm which a controller could only mend afterwards.

``workloads`` and ``rollouts`` say what becomes of an edit, by the rules that the controller has; ``review`` is the
wire. ``certificates``, ``rotation`` and ``bundle`` decide how API servers come to trust it. Around these pure rooms
``server`` listens and ``keeper`` writes.
"""
