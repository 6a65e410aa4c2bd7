"""Tool support of a model as known at launch or after a probe, with its source, as configurations store it.

`RunConfig.support` holds {field, value, source, who, at, ok, error}; {} without a source. `field` is the capability
that decides, `at` an ISO time or "". `ok` and `error` are those of the probe if it was inconclusive, else true and "".
`RunConfig.probe` is the probe that is the source or was inconclusive.
"""

from datetime import datetime
from typing import Any

from toolbench.engine.capabilities.record import DOCS, CapabilityRecord, EffectiveCapabilities
from toolbench.engine.types import JsonObject
from toolbench.lab.date_texts import render_day
from toolbench.lab.models import Probe

SUPPORT_FIELD = "supports_tool_use"
_ANSWER_TEXTS = {True: "yes", False: "no", None: "inconclusive"}


def build_support(effective: EffectiveCapabilities) -> JsonObject:
    """Return the value of `RunConfig.support`; {} if no source says whether the model supports tools."""
    field, record = _find_deciding_record(effective)
    if record is None:
        return {}
    return _build_support_json(field, getattr(effective.capabilities, field), record.source, record.who, record.at)


def find_deciding_probe(effective: EffectiveCapabilities) -> int | None:
    """Return the id of the probe that `build_support` gives as its source; None if the source is no probe."""
    _, record = _find_deciding_record(effective)
    return record.probe_id if record else None


def build_probe_columns(model_id: int, effective: EffectiveCapabilities) -> dict[str, Any]:
    """Return the columns `support` and `probe_id` after a probe.

    If no source says whether the model supports tools, its newest finished probe was inconclusive. Both columns then
    name this probe, and `support` has its error. Without a finished probe, the columns are {} and None.
    """
    support, probe = build_support(effective), find_deciding_probe(effective)
    last_probe = Probe.objects.filter(model_id=model_id, state=Probe.State.DONE).order_by("-pk").first()
    if not support and last_probe is not None:
        support_json = _build_support_json(
            SUPPORT_FIELD, None, "probed", f"probe {last_probe.pk}", last_probe.finished_at
        )
        support, probe = {**support_json, "ok": bool(last_probe.ok), "error": last_probe.error}, last_probe.pk
    return {"support": support, "probe_id": probe}


def describe_support(support: JsonObject) -> str:
    """Describe whether the model supports tools and who says so.

    Returns:
        The description of the capability and its value, such as "Tool calls come back in their own field. Yes: probed,
        probe 7, 2 May 2026."; if nothing is known, a sentence that says so.
    """
    if not support:
        return "Tool support was unknown before the first request."
    value = support["value"]
    text = _ANSWER_TEXTS[value] if value is None or isinstance(value, bool) else str(value)
    error = f" ({support['error']})" if support["error"] else ""
    dated = f", {render_day(support['at'][:10])}" if support["at"] else ""
    return f"{DOCS[support['field']]} {text.capitalize()}{error}: {support['source']}, {support['who']}{dated}."


def _find_deciding_record(effective: EffectiveCapabilities) -> tuple[str, CapabilityRecord | None]:
    """Return the field of the deciding capability, and the record of its source; None if no source is known.

    The field is `tools_field` if tools do not reach the model, else `supports_tool_use`.
    """
    is_lost = effective.capabilities.tools_field in ("refused", "dropped")
    field = "tools_field" if is_lost else SUPPORT_FIELD
    return field, effective.origins.get(field)


def _build_support_json(field: str, value: object, source: str, source_name: str, at: datetime | None) -> JsonObject:
    dated = at.isoformat() if at else ""
    return {"field": field, "value": value, "source": source, "who": source_name, "at": dated, "ok": True, "error": ""}
