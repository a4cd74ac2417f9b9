"""get: one release as a picture of header, steps and tree, or all of them as a list; once, or as long as it lasts."""
