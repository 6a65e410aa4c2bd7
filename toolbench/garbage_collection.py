"""Settings of Python's garbage collector for processes that serve many requests or trials at once."""

import gc

# New objects after which garbage is collected. Python's default is 700. Trials in flight allocate tens of thousands of
# objects between two batches that free them, so a collection finds nothing (decision 122).
ALLOCATION_THRESHOLD = 100_000


def freeze_loaded_objects() -> None:
    """Exclude the objects loaded so far from garbage collection.

    Otherwise a full collection visits every loaded module and every cached result, and stops the process for tenths of
    a second.
    """
    gc.collect()
    gc.freeze()


def collect_rarely() -> None:
    """Collect garbage less often. Reference counting frees most objects of a trial or request."""
    gc.set_threshold(ALLOCATION_THRESHOLD)
