"""Renaming of scenarios in the columns of a row, for scenarios that have another name where they were tried."""

from collections.abc import Mapping
from typing import Any

SCENARIO_COLUMNS = ("scenario", "signature", "cause_signature", "columns")
_SIGNATURE_COLUMNS = ("signature", "cause_signature")
_SEPARATOR = " · "


def rename_scenarios(columns: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns of a cell, a trial or a judgement with scenarios renamed. A signature has it in its second
    part.
    """
    changed = dict(columns)
    if "scenario" in changed:
        changed["scenario"] = names.get(changed["scenario"], changed["scenario"])
    for column in _SIGNATURE_COLUMNS:
        if isinstance(text := changed.get(column), str):
            changed[column] = _rename_in_signature(text, names)
    if isinstance(judged := changed.get("columns"), dict):
        changed["columns"] = rename_scenarios(judged, names)
    return changed


def _rename_in_signature(text: str, names: Mapping[str, str]) -> str:
    parts = text.split(_SEPARATOR)
    if len(parts) < 2:
        return text
    return _SEPARATOR.join((parts[0], names.get(parts[1], parts[1]), *parts[2:]))
