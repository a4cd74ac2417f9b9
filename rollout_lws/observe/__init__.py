"""The picture of a namespace that decisions are made from.

``observer`` builds an ``Observation`` from a ``World``: the questions that caches (in the controller), files (``lint``)
or a cluster read once (``doctor``, ``plan``) answer.
"""
