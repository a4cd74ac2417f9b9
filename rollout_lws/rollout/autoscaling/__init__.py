"""Autoscalers of the LWS: their bounds are held while it is released."""
