"""Asks model servers, Services and Prometheus what decisions want to know, in rounds."""
