"""What somebody typed about a case, read: a case, or what is wrong in which line of which field."""

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.evals.user_cases.definition import OwnCase, case_json
from toolbench.evals.user_cases.documents import NotReadable, check_length, line_of, read_document
from toolbench.evals.user_cases.parse import Fault, Faults, case_of, expectation_of, tools_of
from toolbench.lab.errors import FieldsRefused

_MESSAGES = re.compile(r"\s*\[\s*\{")
_FIELDS = {"tools": "tools", "messages": "message", "expect": "expect", "results": "results", "initial": "start"}
MOST_TITLE = 60
MOST_TOLD = 20  # faults


class DraftRefused(FieldsRefused):
    """A draft that is no case yet."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Texts as typed. `tools`, `expect`, `results` and `start` are JSON or YAML; `message` is what the user says, or
    a list of messages."""

    title: str = ""
    tools: str = ""
    message: str = ""
    expect: str = ""
    system: str = ""
    results: str = ""
    start: str = ""
    turns: int | None = None
    parallel: bool = False


def read_draft(draft: Draft) -> tuple[str, OwnCase]:
    """Title and case. A case that expects one call and nothing else ends after the first answer unless it says
    otherwise. Raises DraftRefused with all that is wrong at once, up to MOST_TOLD faults."""
    errors: dict[str, list[str]] = defaultdict(list)
    told: JsonObject = {"turns": draft.turns, "parallel": draft.parallel}
    for part, field in _FIELDS.items():
        text = getattr(draft, field)
        try:
            told[part] = _read(part, text)
        except NotReadable as error:
            errors[field].append(_said(error))
    try:
        check_length(draft.system)
    except NotReadable as error:
        errors["system"].append(error.says)
    unread = set(errors)
    if draft.system.strip() and "message" not in unread:
        told["messages"] = [{"role": "system", "content": draft.system}, *_messages(told["messages"])]
    for part in ("results", "initial"):
        told[part] = told.get(part) or {}
    if draft.turns is None and _is_one_call(told.get("expect")):
        told["turns"] = 1
    try:
        case = case_of(told)
    except Faults as found:
        for fault in found.faults[:MOST_TOLD]:
            _place(fault, (draft, told), errors, unread)
        raise DraftRefused(dict(errors)) from found
    if errors:
        raise DraftRefused(dict(errors))
    return draft.title.strip()[:120] or default_title(case), case


def draft_of(title: str, case: OwnCase) -> Draft:
    """The texts of a case, to be edited."""
    messages = list(case.messages)
    system = ""
    if len(messages) > 1 and messages[0].get("role") == "system" and isinstance(messages[0].get("content"), str):
        system = messages.pop(0)["content"]
    plain = (
        len(messages) == 1 and set(messages[0]) == {"role", "content"} and not _MESSAGES.match(messages[0]["content"])
    )
    return Draft(
        title=title,
        tools=pretty(list(case.tools)),
        message=messages[0]["content"] if plain else pretty(messages),
        expect=pretty(_short(expectation(case))),
        system=system,
        results=pretty(case.results) if case.results else "",
        start=pretty(case.initial) if case.initial else "",
        turns=case.turns,
        parallel=case.parallel,
    )


def pretty(value: Any) -> str:
    """Indented JSON with its letters as they are, escaped where a page could not hold them."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if _is_text(text) else json.dumps(value, indent=2)


def _is_text(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _read(part: str, text: str) -> Any:
    if part == "messages" and not _MESSAGES.match(text):
        check_length(text)
        return text
    return read_document(text) if text.strip() else None


def _messages(told: Any) -> list[Any]:
    return told if isinstance(told, list) else [{"role": "user", "content": told}]


def _is_one_call(told: Any) -> bool:
    expect = expectation_of(told)
    only_calls = isinstance(expect, dict) and not expect.keys() & {"state", "checks", "no_call"}
    return only_calls and isinstance(expect.get("calls"), list) and len(expect["calls"]) == 1


def _place(fault: Fault, typed: tuple[Draft, JsonObject], errors: dict[str, list[str]], unread: set[str]) -> None:
    """The fault beside its field, with its line; what a field that cannot be read leads to is not told."""
    draft = typed[0]
    part, place = (str(fault.place[0]), fault.place[1:]) if fault.place else ("", ())
    field = _FIELDS.get(part, part if part == "turns" else "expect")
    toolless = "tools" in unread or not draft.tools.strip()
    if field in unread or (toolless and field in ("expect", "results")):
        return
    line = line_of(getattr(draft, field), _typed_place(part, place, typed)) if field in _FIELDS.values() else None
    errors[field].append(f"Line {line}: {fault.says}" if line and place else fault.says)


def _typed_place(part: str, place: tuple[str | int, ...], typed: tuple[Draft, JsonObject]) -> tuple[str | int, ...]:
    """Where it stands in what was typed: a lone call or tool was put into a list, and a function into its wrapping."""
    draft, read = typed
    told = read.get(part)
    if part == "expect" and place[:1] == ("calls",) and (isinstance(told, list) or "name" in (told or {})):
        return place[1:] if isinstance(told, list) else place[2:]
    if part == "tools" and place:
        alone = isinstance(told, dict)
        tool = told[int(place[0])] if isinstance(told, list) else told
        rest = place[2:] if tool not in tools_of([tool]) and place[1:2] == ("function",) else place[1:]
        return rest if alone else (place[0], *rest)
    if part == "messages" and draft.system.strip() and place and isinstance(place[0], int):
        return (place[0] - 1, *place[1:])
    return place


def _said(error: NotReadable) -> str:
    where = f"Line {error.line}, column {error.column}: " if error.line else ""
    return f"{where}{error.says}"


def default_title(case: OwnCase) -> str:
    """The tools that are expected, and the beginning of what is said."""
    said = " ".join(str(case.messages[-1]["content"]).split())
    names = ", ".join(dict.fromkeys(call.name for call in case.expect.calls))
    title = f"{names}: {said}" if names else said
    return title if len(title) <= MOST_TITLE else f"{title[: MOST_TITLE - 1]}…"


def expectation(case: OwnCase) -> JsonObject:
    """The expectation as plain data."""
    told: JsonObject = case_json(case)["expect"]
    return told


def _short(expect: JsonObject) -> Any:
    """One call alone as it was written."""
    return expect["calls"][0] if set(expect) == {"calls"} and len(expect["calls"]) == 1 else expect
