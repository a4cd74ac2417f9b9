"""Progressive delivery for LeaderWorkerSets."""

__version__ = "0.1.0"
