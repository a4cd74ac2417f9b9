"""analyze: judges the gates of a plan once by what serves now, before a release needs them."""
