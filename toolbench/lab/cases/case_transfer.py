"""Cases of one's own as JSON Lines or YAML, out and in."""

import json
from collections.abc import Iterator
from typing import Any

import yaml
from django.db.models import F

from toolbench.engine.messages import JsonObject
from toolbench.evals.own.definition import OwnCase
from toolbench.evals.own.documents import NotReadable, line_of, read_document
from toolbench.evals.own.reading import Faults, case_of
from toolbench.lab.cases.case_drafts import MOST_TOLD, default_title
from toolbench.lab.cases.casework import MINE, Filing, add_cases
from toolbench.lab.models import Case, CaseSet, CaseVersion

MOST_CASES = 5000
_OURS = ("title", "set")


class NotBroughtIn(Exception):
    """Nothing was saved; `sentences` say why, with the line."""

    def __init__(self, sentences: list[str]) -> None:
        self.sentences = sentences
        super().__init__(" ".join(sentences))


def write_cases(kind: str, *, private: bool = False) -> str:
    """Every case of one's own, newest version, in ASCII; those of private sets only where `private`."""
    rows = CaseVersion.objects.filter(
        case__deleted_at=None, case__set__kind=CaseSet.Kind.OWN, number=F("case__current")
    )
    rows = rows if private else rows.filter(case__set__public=True)
    told = [_told(row) for row in rows.select_related("case__set").order_by("case__set_id", "case_id")]
    if kind == "yaml":
        return yaml.safe_dump(told, sort_keys=False, width=100)
    return "".join(f"{json.dumps(one)}\n" for one in told)


def read_cases(text: str, group: str = "") -> tuple[Case, ...]:
    """New cases from a text in either form, all or none; in the set of this name, else where each says it belongs.
    Raises NotBroughtIn with the first MOST_TOLD faults."""
    found: list[tuple[str, str, OwnCase]] = []
    troubles: list[str] = []
    try:
        for line, place, told in _items(text):
            try:
                found.append(_case(told))
            except Faults as faults:
                troubles += [
                    f"Line {line or line_of(text, (*place, *fault.place)) or 1}: {fault.says}"
                    for fault in faults.faults[: max(0, MOST_TOLD - len(troubles))]
                ]
    except NotReadable as error:
        troubles.append(f"Line {error.line or 1}, column {error.column or 1}: {error.says}")
    if not found and not troubles:
        troubles.append("There is no case in it.")
    if len(found) > MOST_CASES:
        troubles.append(f"These are {len(found):,} cases; at most {MOST_CASES:,} come in at once.")
    if troubles:
        raise NotBroughtIn(troubles)
    return add_cases([(title, case, Filing(set=group or own or MINE)) for title, own, case in found])


def _told(row: CaseVersion) -> JsonObject:
    return {"title": row.case.title, "set": row.case.set.name, **json.loads(row.definition)}


def _items(text: str) -> Iterator[tuple[int | None, tuple[int, ...], Any]]:
    """Each case with its line where it has one of its own, and its place in the document. Raises NotReadable."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if lines and all(line.lstrip().startswith("{") and line.rstrip().endswith("}") for _, line in lines):
        for number, line in lines:
            try:
                yield number, (), read_document(line)
            except NotReadable as error:
                raise NotReadable(error.says, number, error.column) from error
        return
    told = read_document(text)
    for place, one in enumerate(told if isinstance(told, list) else [told] if told is not None else []):
        yield None, (place,) if isinstance(told, list) else (), one


def _case(told: Any) -> tuple[str, str, OwnCase]:
    """Title, set, case. Raises Faults."""
    if not isinstance(told, dict):
        return "", "", case_of(told)
    case = case_of({key: value for key, value in told.items() if key not in _OURS})
    title, group = (value if isinstance(value := told.get(key), str) else "" for key in _OURS)
    return title or default_title(case), group, case
