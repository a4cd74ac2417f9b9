"""What figures of model servers say of a version: exposed metrics in (``exposition``, ``signals``), counted by pod and
time (``ledger``), judged by intervals of shares (``shares``, ``looks``, ``trial``).

Nothing here knows of rollouts, of HTTP or of a clock: times are seconds that the caller gives.
"""
