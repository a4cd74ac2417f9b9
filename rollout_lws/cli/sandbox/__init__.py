"""sandbox: a cluster in one process."""
