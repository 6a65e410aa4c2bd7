"""Renaming of scenarios in the columns of imported rows.

A scenario of an imported run may have another slug in this database than in the database that exported the run.
"""

from collections.abc import Mapping
from typing import Any

SCENARIO_COLUMNS = ("scenario", "signature", "cause_signature", "columns")  # columns that contain a scenario's slug
_SIGNATURE_COLUMNS = ("signature", "cause_signature")
_SEPARATOR = " · "  # of a signature, whose second part is the scenario: `wrong_arguments · weather · city`


def rename_scenarios(columns: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a copy of the columns of a cell, a trial or a judgement with scenarios renamed.

    Args:
        columns: values by column name. The column `columns` of a judgement holds such a mapping itself, in which
            scenarios are renamed too.
        names: new slug by old slug; any other scenario keeps its slug.
    """
    renamed = dict(columns)
    if "scenario" in renamed:
        renamed["scenario"] = names.get(renamed["scenario"], renamed["scenario"])
    for column in _SIGNATURE_COLUMNS:
        if isinstance(text := renamed.get(column), str):
            renamed[column] = _rename_in_signature(text, names)
    if isinstance(judged_columns := renamed.get("columns"), dict):
        renamed["columns"] = rename_scenarios(judged_columns, names)
    return renamed


def _rename_in_signature(text: str, names: Mapping[str, str]) -> str:
    parts = text.split(_SEPARATOR)
    if len(parts) < 2:
        return text
    return _SEPARATOR.join((parts[0], names.get(parts[1], parts[1]), *parts[2:]))
