"""Objects as they change: one after the other, or kept by a thread."""
