"""sandbox: a cluster in this process."""
