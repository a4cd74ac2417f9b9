"""Groups of the new version: their number, their problems, and what they wait for."""
