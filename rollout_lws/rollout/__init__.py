"""The rules of a release: a pure state machine from an ``Observation`` to a ``Decision``.

``decide`` is the table of contents: the rules in the order in which they run. A rule takes a ``Draft`` (the immutable
decision in progress) and returns the next one. ``state`` says where a release is, ``preflight`` what keeps one from
starting, ``reasons`` every reason that a status can give.
"""
