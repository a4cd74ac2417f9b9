"""Request and response formats: selectors, error responses and protobuf."""
