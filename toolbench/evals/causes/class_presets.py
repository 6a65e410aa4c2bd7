"""Built-in presets that may correct a failure class: proposals, to be measured before they are adopted."""

from functools import cache

from toolbench.evals.data_files import read_table


@cache
def load_class_presets() -> dict[str, str]:
    """Return the preset names by failure class."""
    return {row["failure_class"]: row["preset"] for row in read_table("class_presets")}
