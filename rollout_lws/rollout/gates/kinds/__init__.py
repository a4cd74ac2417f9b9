"""Kinds of gates that users write: how each is judged, and what has to be watched or measured for it."""
