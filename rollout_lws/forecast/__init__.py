"""What a release will take before it begins: groups, accelerators, traffic weights and model loads of each step.

``plan``, ``init`` and ``lint`` show it. It asks the functions that the controller decides with (``capacity``) and adds
time; stories compare it with releases that ran.
"""
