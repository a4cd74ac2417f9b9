"""What a step has to pass before it ends, in the order of ``table``: its groups (``capacity``), their requests
(``routes``), what its model servers and Services tell (``analysis``, by the kinds of ``kind_table``) and its ``pause``.
"""
