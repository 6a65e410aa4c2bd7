"""Groups of scenarios: tools, weather, a pack, one's own cases. Their rates are never pooled with each other."""

from collections.abc import Iterable

from toolbench.lab.models import Cell

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


def usual_first(group: str) -> tuple[bool, str]:
    return group != USUAL_GROUP, group
