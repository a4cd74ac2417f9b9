"""The API server's admission of writes: defaults, validation and immutable fields of each kind."""
