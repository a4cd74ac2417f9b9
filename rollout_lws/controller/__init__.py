"""The shell around the rules: watches fill caches, workers turn observations into decisions and send their writes.

``reconciler`` handles one key, ``apply`` sends a decision's writes and classifies what the API server refuses,
``process`` starts and stops everything. There are no rules here: these are in ``rollout``.
"""
