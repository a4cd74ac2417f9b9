"""How a write changes what is stored: patches, and which manager owns which field."""
