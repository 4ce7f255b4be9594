"""Python's collector of cycles: what is loaded for good is no longer walked."""

import gc


def leave_out_what_is_loaded() -> None:
    """Call once, when a process has loaded all that it needs.

    A full collection walks every object there is, and holds up all runs of a worker, or all pages of a web process, for
    as long (140 ms where it was measured). Most of what it would walk are modules, models and templates that live as
    long as the process does.
    """
    gc.collect()
    gc.freeze()
