"""Groups of scenarios: tools, weather, a pack, one's own cases. Their rates are never pooled with each other."""

from collections import defaultdict
from collections.abc import Iterable

from toolbench.lab.models import Cell, RunConfig

USUAL_GROUP = "tools"
CONTROL = "control"


def in_groups(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Cells by group, the usual one first. Controls go with the first group; without any other they stand alone."""
    cells = tuple(cells)
    names = sorted({cell.scenario_group for cell in cells if not cell.control}, key=usual_first)
    first = names[0] if names else CONTROL
    found: dict[str, list[Cell]] = {name: [] for name in names or [first] if cells}
    for cell in cells:
        found[first if cell.control else cell.scenario_group].append(cell)
    return found


def in_configs_and_groups(
    configs: Iterable[RunConfig], cells: Iterable[Cell]
) -> tuple[tuple[RunConfig, str, list[Cell]], ...]:
    """Each of these configurations with each group of its cells; the group is "" where all have the same one."""
    own: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        own[cell.config_id].append(cell)
    found = tuple((config, name, some) for config in configs for name, some in in_groups(own[config.pk]).items())
    several = len({name for _, name, _ in found}) > 1
    return tuple((config, name if several else "", some) for config, name, some in found)


def usual_first(group: str) -> tuple[bool, str]:
    return group != USUAL_GROUP, group
