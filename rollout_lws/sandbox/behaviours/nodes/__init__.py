"""Nodes, their scheduler, and kubelets."""
