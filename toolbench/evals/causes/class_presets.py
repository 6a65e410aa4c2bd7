"""Which built-in preset heals a failure class, where one does: a proposal, to be measured before it is believed."""

from functools import cache

from toolbench.evals.data_files import read_table


@cache
def load_class_presets() -> dict[str, str]:
    """Preset names by failure class."""
    return {row["failure_class"]: row["preset"] for row in read_table("class_presets")}
