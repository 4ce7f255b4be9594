"""The measurements of `make bench`: each a ratio against a floor taken in the same run, with median and spread."""
