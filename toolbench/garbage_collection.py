"""Settings of Python's garbage collector for processes that serve many requests or trials at once."""

import gc

# Allocated minus freed objects at which garbage is collected; Python 3.11 collects at 700. Trials in flight allocate
# tens of thousands of objects until a batch of ended trials is freed, and so does a large page until it is sent; a
# collection in between finds nothing (decision 122).
ALLOCATION_THRESHOLD = 100_000


def freeze_loaded_objects() -> None:
    """Exclude the objects loaded so far from garbage collection.

    Otherwise a full collection visits every loaded module and every cached result, and stops the process for tenths of
    a second.
    """
    gc.collect()
    gc.freeze()


def collect_rarely() -> None:
    """Collect garbage less often, since reference counting frees most objects of a trial or request."""
    gc.set_threshold(ALLOCATION_THRESHOLD)
