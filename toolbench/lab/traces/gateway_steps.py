"""Steps of a gateway trace as JSON, with the same columns and details as steps of a trial, but without bodies."""

import json
from collections.abc import Sequence

from toolbench.engine.strict_json import get_object
from toolbench.engine.types import JsonObject
from toolbench.lab.models import Step
from toolbench.lab.traces.step_facts import build_exchange_details, dump_details
from toolbench.lab.traces.step_rows import STEP_COLUMNS, build_step_row
from toolbench.providers.driver.step_records import ExchangeStep

MAX_PACKED_BYTES = 1 << 20  # of the steps of one trace


def pack_steps(steps: Sequence[ExchangeStep]) -> bytes | None:
    """Return the steps of a request as JSON.

    If a model fails and the gateway tries a further one, the driver counts turns, steps and milliseconds from the start
    again. In the result, numbers and times continue those of the model before.

    Args:
        steps: steps in the order in which their requests were sent.

    Returns:
        None if there are no steps, or if the JSON would have more than MAX_PACKED_BYTES.
    """
    parts: list[bytes] = []
    turn_offset = last_turn = last_ordinal = 0
    offset_ms = end_ms = 0.0
    for number, step in enumerate(steps, start=1):
        if step.ordinal <= last_ordinal:
            turn_offset, offset_ms = last_turn + 1, end_ms
        last_turn, last_ordinal = turn_offset + step.turn, step.ordinal
        started_ms = offset_ms + step.started_ms
        end_ms = started_ms + step.duration_ms
        row = build_step_row(step) | {"ordinal": number, "turn": last_turn, "started_ms": started_ms}
        parts.append(b'{"row": %b, "facts": %b}' % (dump_details(row), build_exchange_details(step)))
    packed = b"[%b]" % b", ".join(parts)
    return packed if parts and len(packed) <= MAX_PACKED_BYTES else None


def unpack_steps(packed: bytes | memoryview | None) -> tuple[tuple[Step, JsonObject], ...]:
    """Return the steps with their details. They are rows of no table, so their primary key is negative: -ordinal."""
    entries = json.loads(bytes(packed or b"[]"))
    return tuple((_build_step(entry["row"]), get_object(entry["facts"])) for entry in entries)


def _build_step(row: JsonObject) -> Step:
    columns = {name: value for name, value in row.items() if name in STEP_COLUMNS}
    return Step(pk=-columns["ordinal"], execution=1, **columns)
