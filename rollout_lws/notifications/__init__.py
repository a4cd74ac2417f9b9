"""Notifications: what has an Event is sent to receivers outside the cluster, as CloudEvents or to Slack.

``data.py`` has the shape of what is told, ``transition.py`` makes it of an Event and the Rollout as it stands since,
``cloudevents.py`` and ``slack.py`` render it, ``delivery.py`` judges what a receiver answered: all pure.
``destination.py`` reads where to from files, ``post.py`` sends one request, and ``outbox.py`` has the queues.
"""
