"""Renaming of scenarios in the columns of a row.

A scenario of an imported run may have another name in this database than where it was tried.
"""

from collections.abc import Mapping
from typing import Any

SCENARIO_COLUMNS = ("scenario", "signature", "cause_signature", "columns")
_SIGNATURE_COLUMNS = ("signature", "cause_signature")
_SEPARATOR = " · "


def rename_scenarios(columns: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns of a cell, a trial or a judgement with scenarios renamed.

    Args:
        columns: values by column name. A signature names the scenario in its second part.
        names: new names of scenarios; any other keeps its name.
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
