"""The processes that are measured: the bare floor and ours."""
