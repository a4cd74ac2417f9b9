"""What a release will take before it begins: groups, model loads, traffic weights and seconds of each step.

``plan``, ``init`` and ``lint`` show it; ``plan`` computes accelerators from its groups. It asks the functions that the
controller decides with (``capacity``) and adds time; stories compare it with releases that ran.
"""
