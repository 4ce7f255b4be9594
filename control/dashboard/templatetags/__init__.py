"""Template filters and tags of the window."""
