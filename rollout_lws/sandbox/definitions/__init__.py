"""Definitions of the custom resources that the sandbox comes with, and what any definition adds."""
