"""The health page: processes, problems in words, and the space on disk."""

from dataclasses import dataclass

from toolbench.lab.operations.problems import HealthProblem, find_problems
from toolbench.lab.operations.storage_space import StorageSpace, measure_storage_space
from toolbench.lab.worker.health import Health, get_health


@dataclass(frozen=True, slots=True)
class HealthPage:
    """Data of the health page.

    Attributes:
        health: processes, a missing worker, cells that cannot be computed and failed jobs.
        problems: all other problems.
    """

    health: Health
    problems: tuple[HealthProblem, ...]
    space: StorageSpace

    @property
    def is_healthy(self) -> bool:
        """Whether neither `health` nor `problems` has a problem."""
        return self.health.is_healthy and not self.problems


def get_health_page() -> HealthPage:
    """Return the data of the page, read from the database and the disk."""
    health, space = get_health(), measure_storage_space()
    return HealthPage(health, find_problems(health, space), space)
