"""Objects of any kind that scripts of an administrator change (``customNetworkRefs``)."""
