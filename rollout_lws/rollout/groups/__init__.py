"""Groups of the new version: how many there are to be, which are in trouble, and what they wait for."""
