"""CPU time of this process and of the database's backend, which other work on the machine does not lengthen."""

import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from django.db import connection

_NANOSECONDS_PER_MS = 1_000_000


@dataclass(slots=True)
class CpuClock:
    """Measures from `with` to its end, in milliseconds. Linux only.

    Parallel workers of the database are processes of their own and are not counted.

    Attributes:
        wall_ms: the time that passed.
        python_ms: CPU of all threads of this process.
        database_ms: CPU of the backend of this thread's connection; of a connection made meanwhile, all of it.
    """

    wall_ms: float = 0.0
    python_ms: float = 0.0
    database_ms: float = 0.0

    def __enter__(self) -> "CpuClock":
        self.database_ms = -_read_backend_ms()
        self.python_ms = -1000 * time.process_time()
        self.wall_ms = -1000 * time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.wall_ms += 1000 * time.perf_counter()
        self.python_ms += 1000 * time.process_time()
        self.database_ms += _read_backend_ms()

    @property
    def cpu_ms(self) -> float:
        """CPU of both."""
        return self.python_ms + self.database_ms


def _read_backend_ms() -> float:
    """Return the CPU time of the connection's backend; 0 without a connection."""
    if connection.connection is None:
        return 0.0
    statistics = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    return int(statistics.read_text().split()[0]) / _NANOSECONDS_PER_MS
