"""Checks for each part of the chain, as links: from the controller's rules, or from the objects themselves."""
