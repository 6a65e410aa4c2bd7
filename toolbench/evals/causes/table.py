"""The table of causes: for each a stable code, a plain sentence, a suggested fix and a link."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from toolbench.evals.data_files import freeze_row, read_table


@dataclass(frozen=True, slots=True)
class WireCause:
    """One row of the table.

    Attributes:
        remedy: The suggested fix.
        link: The path of a page of Toolbench that helps with the fix.
        group: The heading under which pages list the cause.
        sentence: The cause in words.
        harmless: Whether the cause has no consequence by itself.
        exchange: The error codes of failed exchanges that have this cause.
        findings: The codes of findings about an answer that have this cause.
        envelope: The error codes of failed calls that have this cause.
        changes: The names of transforms whose change of an answer shows this cause.
        violations: The kinds of schema violations that have this cause.
        classes: The codes of failure classes that always have this cause, whatever the exchanges show.
    """

    code: str
    group: str
    sentence: str
    remedy: str
    link: str
    harmless: bool = False
    exchange: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    envelope: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


def read_taxonomy_version() -> int:
    """Return the version of the table, which is stored with every classified trial."""
    return int(read_table("wire_causes")["version"])


@cache
def load_causes() -> Mapping[str, WireCause]:
    """Return every row by its code, in the table's order."""
    rows = [WireCause(**freeze_row(row)) for row in read_table("wire_causes")["rows"]]
    return {row.code: row for row in rows}


def lookup_code(column: str, key: str) -> str:
    """Return the code of the cause that has `key` in a column of the table; "" for none.

    Args:
        column: The name of an attribute of WireCause that lists codes or names, such as `exchange`.
        key: The code or the name to look up.
    """
    return _build_code_mapping(column).get(key, "")


def classify_envelope(*error_codes: str) -> str:
    """Return the code of the cause of a failed call with these error codes.

    The first error code that is in the column `envelope` of the table decides; the cause is `tool_failed` if none is.
    """
    return next((cause for code in error_codes if (cause := lookup_code("envelope", code))), "tool_failed")


@cache
def _build_code_mapping(column: str) -> Mapping[str, str]:
    return {key: row.code for row in load_causes().values() for key in getattr(row, column)}


@cache
def load_class_presets() -> dict[str, str]:
    """Return the name of the suggested preset by failure class, for the classes that have one."""
    return {row["failure_class"]: row["preset"] for row in read_table("class_presets")}
