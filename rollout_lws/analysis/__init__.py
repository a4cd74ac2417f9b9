"""What figures of model servers say of a version: exposed metrics in (``exposition``, ``signals``), counted by pod and
time (``ledger``), judged by intervals of shares (``shares``, ``looks``, ``trial``); and what answers to requests say
(``calls``).

Nothing here knows of rollouts, of connections or of a clock: times are seconds that the caller gives.
"""
