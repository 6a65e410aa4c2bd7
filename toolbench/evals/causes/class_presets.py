"""Which built-in preset heals a failure class, where one does: a proposal, to be measured before it is believed."""

import json
from functools import cache
from pathlib import Path

TABLE = Path(__file__).parents[1] / "data" / "class_presets.json"


@cache
def class_presets() -> dict[str, str]:
    """Preset names by failure class."""
    return {row["failure_class"]: row["preset"] for row in json.loads(TABLE.read_text(encoding="utf-8"))}
