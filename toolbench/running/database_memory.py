"""Memory settings of the PostgreSQL that `make up` starts, chosen by the memory of this machine."""

import os
from collections.abc import Mapping
from pathlib import Path

_MEGABYTE = 1_048_576
# PostgreSQL's default is 128 MB, which is less than the indexes of the lists over a million trials.
_BUFFERS_MB = (128, 512)
_MEMORY_PER_BUFFERS = 8
# PostgreSQL's default is 4 MB; a larger sort or hash table is written to a temporary file. Each connection may need it
# several times at once.
_WORK_MB = (4, 32)
_MEMORY_PER_WORK = 256
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def build_memory_settings(memory_mb: int) -> Mapping[str, str]:
    """Return PostgreSQL's settings for a machine with so many megabytes of memory."""
    buffers = _clamp(memory_mb // _MEMORY_PER_BUFFERS, *_BUFFERS_MB)
    work = _clamp(memory_mb // _MEMORY_PER_WORK, *_WORK_MB)
    return {"shared_buffers": f"{buffers}MB", "work_mem": f"{work}MB"}


def read_memory_mb(limits: tuple[Path, ...] = _CGROUP_LIMITS) -> int:
    """Return the memory of this machine, or of the container, in megabytes.

    Args:
        limits: files that may hold the limit of the container in bytes, or "max" without one.
    """
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(min(machine, *map(_read_limit, limits))) // _MEGABYTE


def _read_limit(file: Path) -> float:
    """Return the bytes that the file allows; infinity without the file or a limit."""
    try:
        return float(file.read_text("ascii").strip().replace("max", "inf"))
    except (OSError, ValueError):
        return float("inf")


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
