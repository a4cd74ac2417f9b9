"""Who gets requests: EndpointSlices, and what a Gateway's controller says."""
