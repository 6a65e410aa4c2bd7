"""Settings of Python's garbage collector for processes that serve many requests or trials at once."""

import gc

# New objects after which garbage is collected. Python's default is 700. Trials in flight allocate tens of thousands of
# objects between two batches that free them, so a collection finds nothing (decision 122).
ALLOCATION_THRESHOLD = 100_000


def freeze_loaded_objects() -> None:
    """Exclude the objects loaded so far from garbage collection, and collect less often.

    Reference counting frees most objects of a trial or request, so that the collector finds little. Without this, a
    full collection visits every loaded module and stops the process for a tenth of a second.
    """
    gc.freeze()
    gc.set_threshold(ALLOCATION_THRESHOLD)
