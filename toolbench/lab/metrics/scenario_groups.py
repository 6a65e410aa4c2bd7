"""Groups of scenarios: tools, weather, a pack, user cases. Rates of different groups are never pooled."""

from collections import defaultdict
from collections.abc import Iterable

from toolbench.lab.models import Cell, RunConfig

DEFAULT_GROUP = "tools"
CONTROL_GROUP = "control"


def group_cells(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Group cells, the default group first. Controls belong to the first group; without other cells they form one."""
    cells = tuple(cells)
    names = sorted({cell.scenario_group for cell in cells if not cell.control}, key=build_group_sort_key)
    first = names[0] if names else CONTROL_GROUP
    found: dict[str, list[Cell]] = {name: [] for name in names or [first] if cells}
    for cell in cells:
        found[first if cell.control else cell.scenario_group].append(cell)
    return found


def group_cells_by_config(
    configs: Iterable[RunConfig], cells: Iterable[Cell]
) -> tuple[tuple[RunConfig, str, list[Cell]], ...]:
    """Return each configuration with each group of its cells; the group is "" where all have the same one."""
    cells_by_config: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        cells_by_config[cell.config_id].append(cell)
    found = tuple(
        (config, name, grouped_cells)
        for config in configs
        for name, grouped_cells in group_cells(cells_by_config[config.pk]).items()
    )
    several = len({name for _, name, _ in found}) > 1
    return tuple((config, name if several else "", grouped_cells) for config, name, grouped_cells in found)


def build_group_sort_key(group: str) -> tuple[bool, str]:
    """Return a sort key that puts the default group first."""
    return group != DEFAULT_GROUP, group
