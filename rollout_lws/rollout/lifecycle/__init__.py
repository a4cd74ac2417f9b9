"""The lifecycle of a release: its steps, its end, and how an LWS is adopted, held and detached."""
