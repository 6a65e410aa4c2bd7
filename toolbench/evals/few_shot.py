"""Few-shot sets: solved examples that are placed in the history before the question.

The name of a set includes its version.
"""

import json
from collections.abc import Iterator

from toolbench.engine.types import JsonObject, Message
from toolbench.evals.data_files import read_table


def load_sets(scenario: str) -> dict[str, tuple[Message, ...]]:
    """Return the scenario's sets by name, as chat messages in OpenAI's format; empty if it has none."""
    rows = [row for row in read_table("examples") if row["scenario"] == scenario]
    return {row["name"]: tuple(_iter_messages(row["exchanges"])) for row in rows}


def list_scenarios_by_set() -> dict[str, tuple[str, ...]]:
    """Return the slugs of the scenarios that have a set, by the name of the set."""
    slugs_by_set: dict[str, tuple[str, ...]] = {}
    for row in read_table("examples"):
        slugs_by_set[row["name"]] = (*slugs_by_set.get(row["name"], ()), row["scenario"])
    return slugs_by_set


def _iter_messages(exchanges: list[JsonObject]) -> Iterator[Message]:
    """Yield four messages for each exchange: user, assistant with one call, tool, assistant."""
    for number, exchange in enumerate(exchanges, start=1):
        call_id, call = f"example_{number}", exchange["call"]
        function = {"name": call["name"], "arguments": _to_compact_json(call["arguments"])}
        tool_call = {"id": call_id, "type": "function", "function": function}
        yield {"role": "user", "content": exchange["question"]}
        yield {"role": "assistant", "content": "", "tool_calls": [tool_call]}
        yield {"role": "tool", "tool_call_id": call_id, "content": _to_compact_json(exchange["result"])}
        yield {"role": "assistant", "content": exchange["answer"]}


def _to_compact_json(value: JsonObject) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
