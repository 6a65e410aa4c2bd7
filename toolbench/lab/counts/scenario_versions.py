"""Versions of one scenario are different tasks: their counts are never added up. Pages count the newest in view."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from toolbench.lab.models import Cell

Lines = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    """Cells of a version that a page leaves out, since a newer version of the same wording is in view."""

    scenario: str
    version: int
    kind: str

    @property
    def token(self) -> str:
        """Return what names the scenario's version in an address."""
        return f"{self.scenario}@{self.version}"


def split_newest(lines: Lines) -> tuple[Lines, Lines]:
    """Return the lines in the newest version of their scenario, and those in an earlier one.

    Args:
        lines: with `scenario` and `scenario_version`, of one instance kind.
    """
    newest: dict[str, int] = {}
    for line in lines:
        newest[line["scenario"]] = max(line["scenario_version"], newest.get(line["scenario"], 0))
    kept = [line for line in lines if line["scenario_version"] == newest[line["scenario"]]]
    return kept, [line for line in lines if line["scenario_version"] != newest[line["scenario"]]]


def find_earlier(cells: QuerySet[Cell]) -> tuple[EarlierVersion, ...]:
    """Return what of these cells is in an earlier version than others of the same scenario and kind. One query."""
    grouped = cells.order_by().values("scenario", "instance_kind", "scenario_version")
    lines: Lines = [dict(line) for line in grouped.distinct()]
    found: list[EarlierVersion] = []
    for kind in sorted({line["instance_kind"] for line in lines}):
        _, earlier = split_newest([line for line in lines if line["instance_kind"] == kind])
        found += [EarlierVersion(line["scenario"], line["scenario_version"], kind) for line in earlier]
    return tuple(sorted(found, key=lambda one: (one.scenario, one.version, one.kind)))


def leave_out(cells: QuerySet[Cell], earlier: Iterable[EarlierVersion]) -> QuerySet[Cell]:
    """Return the cells without these versions."""
    for one in earlier:
        cells = cells.exclude(scenario=one.scenario, scenario_version=one.version, instance_kind=one.kind)
    return cells


def say_left_out(versions: Sequence[str]) -> str:
    """Return the sentence of a page that leaves earlier versions out; "" for none.

    Args:
        versions: tokens of `EarlierVersion`, repeats allowed.
    """
    if not versions:
        return ""
    named = ", ".join(f"{slug} version {version}" for slug, version in sorted(_read_tokens(",".join(versions))))
    return (
        f"Left out, since a newer version of the scenario is in view: {named}. Versions are different tasks and are "
        "never added up; choose only the runs of the earlier version to see it."
    )


def is_tokens(text: str) -> bool:
    """Whether the text is a comma list of tokens."""
    return all(slug and version.isdecimal() and len(version) < 6 for slug, _, version in _parts(text))


def without_q(tokens: str) -> Q:
    """Return the condition that leaves out the versions named by tokens, on rows that bear a scenario."""
    found = Q()
    for slug, version in _read_tokens(tokens):
        found &= ~Q(scenario=slug, scenario_version=version)
    return found


def _read_tokens(tokens: str) -> set[tuple[str, int]]:
    return {(slug, int(version)) for slug, _, version in _parts(tokens)}


def _parts(tokens: str) -> Iterator[tuple[str, str, str]]:
    return (token.rpartition("@") for token in tokens.split(",") if token)


def tokens_of(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the tokens of lines with `scenario` and `scenario_version`."""
    return ",".join(sorted({f"{line['scenario']}@{line['scenario_version']}" for line in lines}))
