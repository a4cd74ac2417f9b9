"""What is served, as clients ask for it."""
