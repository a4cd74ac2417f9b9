"""Autoscalers of the LWS: the controller manages their bounds during a release."""
