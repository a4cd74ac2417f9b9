"""status: the gate for pipelines."""
