"""What is between a Rollout and the requests that its pods shall answer, link by link, and which is the first broken.

``cluster`` reads, and notes what it may not read; ``chain`` judges by ``checks``, without I/O or clock; ``output``
prints.
"""
