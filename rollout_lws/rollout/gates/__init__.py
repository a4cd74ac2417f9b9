"""What a step has to pass before it ends, in the order of ``table``: its groups (``capacity``), their requests
(``routes``), what its model servers tell (``analysis``) and its ``pause``.
"""
