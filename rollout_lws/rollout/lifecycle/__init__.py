"""A release from its start to its end: what is on, what ends it, and how the LWS is adopted, held and given back."""
