"""demo: a release on an embedded cluster, shown live, with requests that are counted."""
