"""What providers declare of their endpoints, by the name of their template."""

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from toolbench.engine.capabilities.record import Told, read_capabilities
from toolbench.engine.messages import JsonObject

_FACTS = Path(__file__).parents[1] / "data" / "capabilities.json"


def declared_by(template: str) -> Told | None:
    """None for a provider that says nothing."""
    return _all().get(template)


@cache
def _all() -> dict[str, Told]:
    facts: JsonObject = json.loads(_FACTS.read_text("utf-8"))
    at = datetime.strptime(facts["as_of"], "%Y-%m-%d").replace(tzinfo=UTC)
    return {
        template: Told("declared", read_capabilities(row["capabilities"]), row["source"], at)
        for template, row in facts["providers"].items()
    }
