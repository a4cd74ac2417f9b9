"""The checks of each part of the chain: what the controller's rules say of it, or what is there, as links."""
