"""Watches: a stream of one object's states, or a cache that a thread keeps up to date."""
