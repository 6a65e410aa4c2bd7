"""Capabilities that providers declare in their documentation, by provider template (such as `openai`)."""

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from toolbench.engine.capabilities.record import CapabilityRecord, parse_capabilities
from toolbench.engine.types import JsonObject

_DATA_PATH = Path(__file__).parents[1] / "data" / "capabilities.json"


def find_declared_capabilities(template: str) -> CapabilityRecord | None:
    """Return the capabilities that a provider with this template declares; None if it declares none.

    Args:
        template: name of the provider template, such as `openrouter`.
    """
    return _load_declared().get(template)


@cache
def _load_declared() -> dict[str, CapabilityRecord]:
    document: JsonObject = json.loads(_DATA_PATH.read_text("utf-8"))
    declared_at = datetime.strptime(document["as_of"], "%Y-%m-%d").replace(tzinfo=UTC)
    return {
        template: CapabilityRecord("declared", parse_capabilities(row["capabilities"]), row["source"], declared_at)
        for template, row in document["providers"].items()
    }
