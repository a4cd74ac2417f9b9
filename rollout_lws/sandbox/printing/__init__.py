"""Tables for kubectl get."""
