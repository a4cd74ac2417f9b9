"""Requests: which version gets how many, which selectors and routes say so, and what is given back."""
