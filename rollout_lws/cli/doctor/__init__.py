"""doctor: checks the chain from a Rollout to the requests its pods serve, link by link, to find the first broken one.

``cluster`` reads, and records which kinds it may not read; ``chain`` judges by ``checks``, without I/O or clock;
``output`` prints.
"""
