"""A page for releases in a browser, served on loopback with the user's own kubeconfig and rights."""
