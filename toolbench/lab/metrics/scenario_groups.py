"""Grouping of cells by scenario group, such as `tools` or the name of a task pack.

Groups are different kinds of tasks, so no rate of tool scenarios spans two of them.
"""

from collections import defaultdict
from collections.abc import Iterable

from toolbench.lab.models import Cell, RunConfig

DEFAULT_GROUP = "tools"
CONTROL_GROUP = "control"


def group_cells(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Return the cells of each group by its name, the default group first and the others in order of their names.

    Controls are added to the first group; if there are only controls, they form the group CONTROL_GROUP.
    """
    cells = tuple(cells)
    if not cells:
        return {}
    tool_groups = {cell.scenario_group for cell in cells if not cell.control}
    names = sorted(tool_groups, key=build_group_sort_key) or [CONTROL_GROUP]
    groups: dict[str, list[Cell]] = {name: [] for name in names}
    for cell in cells:
        groups[names[0] if cell.control else cell.scenario_group].append(cell)
    return groups


def group_cells_by_config(
    configs: Iterable[RunConfig], cells: Iterable[Cell]
) -> tuple[tuple[RunConfig, str, list[Cell]], ...]:
    """Group the cells of each configuration by scenario group.

    Returns:
        For each configuration and each of its groups, the configuration, the group's name and the cells. A
        configuration without cells is missing. The name is "" if the cells of all configurations are in the same group.
    """
    cells_by_config: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        cells_by_config[cell.config_id].append(cell)
    parts = tuple(
        (config, name, grouped_cells)
        for config in configs
        for name, grouped_cells in group_cells(cells_by_config[config.pk]).items()
    )
    has_several_groups = len({name for _, name, _ in parts}) > 1
    return tuple((config, name if has_several_groups else "", grouped_cells) for config, name, grouped_cells in parts)


def build_group_sort_key(group: str) -> tuple[bool, str]:
    """Return a sort key that puts the default group first, and the others in order of their names."""
    return group != DEFAULT_GROUP, group
