"""Cases of one's own as JSON Lines or YAML, out and in."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from django.db.models import F

from toolbench.engine.messages import JsonObject
from toolbench.evals.user_cases.documents import NotReadable, line_of, read_document
from toolbench.evals.user_cases.parse import Fault, Faults, case_of
from toolbench.lab.cases.drafts import MOST_TOLD, default_title
from toolbench.lab.cases.edit import OURS
from toolbench.lab.cases.merge_import import BroughtIn, Told, bring_in
from toolbench.lab.models import CaseSet, CaseVersion

MOST_CASES = 5000
_OWN = ("slug", "title", "set")
_SLUG = re.compile(rf"{OURS}[a-z0-9_-]{{1,52}}")


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


def read_cases(text: str, group: str = "") -> BroughtIn:
    """Cases from a text in either form, all or none; new ones in the set of this name, else where each says it belongs.
    Raises NotBroughtIn with the first MOST_TOLD faults."""
    found: list[Told] = []
    troubles: list[str] = []
    slugs: set[str] = set()
    try:
        for line, place, told in _items(text):
            try:
                found.append(_case(told, slugs))
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
    return bring_in(found, group)


def _told(row: CaseVersion) -> JsonObject:
    named = {"slug": row.case.slug, "title": row.case.title, "set": row.case.set.name}
    return {**named, **json.loads(row.definition)}


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


def _case(told: Any, slugs: set[str]) -> Told:
    """`slugs` are those of the cases before it, its own is added. Raises Faults."""
    if not isinstance(told, dict):
        return Told("", case_of(told))
    case = case_of({key: value for key, value in told.items() if key not in _OWN})
    slug, title, group = (value if isinstance(value := told.get(key), str) else "" for key in _OWN)
    if told.get("slug") is not None and not _SLUG.fullmatch(slug):
        raise Faults([Fault(("slug",), f"A slug begins with {OURS} and has small letters, digits and - at most.")])
    if slug in slugs:
        raise Faults([Fault(("slug",), f"The slug {slug} stands for a case before this one.")])
    slugs.update([slug] if slug else [])
    return Told(title or default_title(case), case, slug, group)
