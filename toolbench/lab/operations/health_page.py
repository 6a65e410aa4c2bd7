"""The health page: processes, problems in words, and the space on disk."""

from dataclasses import dataclass

from toolbench.lab.operations.problems import HealthProblem, find_problems
from toolbench.lab.operations.storage_space import StorageSpace, measure_storage_space
from toolbench.lab.worker.health import Health, get_health


@dataclass(frozen=True, slots=True)
class HealthPage:
    """What the page shows.

    Attributes:
        problems: problems other than a missing worker, cells that are set aside and failed jobs: `health` has those.
    """

    health: Health
    problems: tuple[HealthProblem, ...]
    space: StorageSpace

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong."""
        return self.health.is_healthy and not self.problems


def get_health_page() -> HealthPage:
    """Read what the page shows."""
    health, space = get_health(), measure_storage_space()
    return HealthPage(health, find_problems(health, space), space)
