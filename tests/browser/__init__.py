"""The dashboard in a real browser, which reaches nothing but loopback: see docs/adr/0021."""
