"""API discovery and OpenAPI."""
