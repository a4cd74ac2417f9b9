"""YAML and JSON as text: YAML as kubectl reads it, with positions of fields for messages, and limits on nesting."""
