"""How the user's Services, InferencePools and routes are split between two versions, and restored exactly afterwards.

``registry`` describes the kinds of routers as data, ``router`` is the protocol that each implements, ``routers`` lists
the implementations and says what a further kind needs. Selectors are pinned by ``services`` and ``pools``. What the
objects were before is in an annotation (``marks``). Which version gets how many requests is decided in
``rollout.routing``.
"""
