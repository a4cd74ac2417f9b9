"""Traffic routing: the weight of each version, the selectors and routes that carry it, and restoring them."""
