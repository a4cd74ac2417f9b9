"""What a step has to pass before it ends, in the order of ``table``: its groups (``capacity``), their requests
(``routes``) and its ``pause``.
"""
