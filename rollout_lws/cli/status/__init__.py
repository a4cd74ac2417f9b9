"""status: the gate of a pipeline."""
