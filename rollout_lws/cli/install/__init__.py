"""install: renders the manifests that a cluster needs, and applies them."""
