"""What a step has to pass before it ends, one gate a file; ``table`` has their order."""
