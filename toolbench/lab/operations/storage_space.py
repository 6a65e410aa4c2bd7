"""Space on disk of stored trials and gateway traces, and the days until the disk of the database is full."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.template.defaultfilters import filesizeformat

from toolbench.lab.sql import load_statement

MIN_TRIALS = 100  # with fewer, the empty pages of tables and indexes outweigh the trials
GROWTH_DAYS = 7
GROUP_BY_TABLE: Mapping[str, str] = {
    "lab_trial": "Trials with verdicts and figures",
    "lab_step": "Steps",
    "lab_stepbody": "Bodies of requests, answers and step details",
    "lab_trialtext": "Search texts",
    "lab_gatewaytrace": "Gateway traces",
    "lab_gatewaytracetext": "Search texts of gateway traces",
}
TRIAL_TABLES = ("lab_trial", "lab_step", "lab_stepbody", "lab_trialtext")
TRACE_TABLES = ("lab_gatewaytrace", "lab_gatewaytracetext")
OTHER_GROUP = "Everything else"
_MEASURE_SPACE = load_statement("operations/measure_space")


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Space on the disk that holds the database.

    Attributes:
        folder: the folder of the database on this machine.
    """

    folder: str
    total_bytes: int
    free_bytes: int

    @property
    def free_share(self) -> float:
        """Share of the disk that is free, from 0 to 1."""
        return self.free_bytes / self.total_bytes if self.total_bytes else 0.0


@dataclass(frozen=True, slots=True)
class StorageSpace:
    """Space that the database takes, and its growth.

    Attributes:
        groups: (name, bytes) of groups of tables with their indexes, the largest first.
        trial_bytes: bytes of the tables of trials with their indexes.
        trials: number of planned and ended trials of all runs; deleted runs count, since their trials are still stored.
        recent_trials: number of trials of runs that were launched in the last GROWTH_DAYS days, imported runs left out.
        disk: None if the database runs on another machine, or its folder cannot be read.
        recent_traces: number of gateway traces of the last GROWTH_DAYS days.
        trace_growth_bytes: estimated bytes of the recent traces, less those of the traces that will be deleted in the
            next GROWTH_DAYS days; at least 0.
    """

    groups: tuple[tuple[str, int], ...]
    trial_bytes: int
    trials: int
    recent_trials: int
    disk: DiskSpace | None
    recent_traces: int = 0
    trace_growth_bytes: float = 0.0

    @property
    def database_bytes(self) -> int:
        """Bytes of the whole database."""
        return sum(size for _, size in self.groups)

    @property
    def bytes_per_trial(self) -> float | None:
        """Average bytes of a trial with its steps, bodies, search text and indexes; None below MIN_TRIALS trials."""
        return self.trial_bytes / self.trials if self.trials >= MIN_TRIALS else None

    @property
    def bytes_per_day(self) -> float | None:
        """Growth in bytes per day at the rate of the last GROWTH_DAYS days.

        None if the size of a trial is unknown and gateway traces do not grow.
        """
        size = self.bytes_per_trial
        if size is None and not self.trace_growth_bytes:
            return None
        return ((size or 0.0) * self.recent_trials + self.trace_growth_bytes) / GROWTH_DAYS

    @property
    def days_left(self) -> float | None:
        """Days until the disk is full at the rate of the last GROWTH_DAYS days.

        None if the disk or the growth is unknown, or nothing grew.
        """
        growth = self.bytes_per_day
        return self.disk.free_bytes / growth if growth and self.disk else None


def measure_storage_space() -> StorageSpace:
    """Measure the space with one query, which reads file sizes, the runs, and the times of gateway traces."""
    with connection.cursor() as cursor:
        cursor.execute(
            _MEASURE_SPACE,
            {"tables": list(GROUP_BY_TABLE), "days": GROWTH_DAYS, "trace_days": settings.TRACE_DAYS},
        )
        row = cursor.fetchone()
    sizes_text, database_bytes, trials, recent_trials, recent_traces, expiring_traces, traces, folder = row
    sizes: dict[str, int] = json.loads(sizes_text)
    trace_bytes = sum(sizes.get(table, 0) for table in TRACE_TABLES)
    groups = [(GROUP_BY_TABLE[table], size) for table, size in sizes.items()]
    groups.append((OTHER_GROUP, max(0, database_bytes - sum(sizes.values()))))
    return StorageSpace(
        groups=tuple(sorted(groups, key=lambda group: -group[1])),
        trial_bytes=sum(sizes.get(table, 0) for table in TRIAL_TABLES),
        trials=trials,
        recent_trials=recent_trials,
        disk=measure_disk(folder) if folder and is_database_here() else None,
        recent_traces=recent_traces,
        trace_growth_bytes=trace_bytes * max(0, recent_traces - expiring_traces) / max(1, traces),
    )


def format_bytes(size: int) -> str:
    """Return a size such as "1.1 GB" for terminals and logs, with an ordinary space, not Django's no-break space."""
    return filesizeformat(size).replace("\xa0", " ")


def is_database_here() -> bool:
    """Return whether the database runs on this machine, that is, whether it is reached by a Unix socket."""
    return str(settings.DATABASES["default"].get("HOST") or "/").startswith(("/", "%2F"))


def measure_disk(folder: str) -> DiskSpace | None:
    """Return the space on the disk that holds a folder; None if the folder cannot be read."""
    try:
        usage = shutil.disk_usage(Path(folder))
    except OSError:
        return None
    return DiskSpace(folder, usage.total, usage.free)
