"""Drafts of test cases: texts that a user typed, which are parsed into a case or into errors by field and line."""

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.user_cases.definition import UserCase, case_to_json
from toolbench.evals.user_cases.documents import DocumentError, check_length, find_line, read_document
from toolbench.evals.user_cases.parse import CaseProblem, InvalidCaseError, parse_case, parse_expectation, parse_tools
from toolbench.lab.errors import InvalidFieldsError

_MESSAGES_PATTERN = re.compile(r"\s*\[\s*\{")  # beginning of a list of messages: [{"role": …
_TEXT_LIST_PATTERN = re.compile(r"\s*(\[|- )")  # beginning of a list of texts: ["…" in JSON, - … in YAML
# Field of CaseDraft with the text to parse, by key in the JSON document of a case.
_FIELD_BY_PART = {
    "tools": "tools",
    "messages": "message",
    "expect": "expect",
    "results": "results",
    "initial": "start",
    "further": "further",
    "workspace": "workspace",
    "settings": "settings",
}
# Fields of CaseDraft that the document of a case has under the same key, unchanged.
_PLAIN_FIELDS = ("turns", "parallel", "group", "control", "behaviour")
MAX_TITLE_CHARS = 120
MAX_DEFAULT_TITLE_CHARS = 60
MAX_PROBLEMS_SHOWN = 20


class DraftError(InvalidFieldsError):
    """Draft that is not a valid case."""


@dataclass(frozen=True, slots=True)
class CaseDraft:
    """Fields of a case as a user typed them. Empty fields are not part of the case.

    The fields correspond to those of `UserCase`: `system` and `message` make its messages, `start` is `initial`. The
    title is not part of the case.

    Attributes:
        tools: JSON or YAML, as are `expect`, `results`, `start`, `workspace` and `settings`.
        message: the user's message, or a list of messages in JSON.
        system: the system prompt.
        results: results of the simulated tools, by tool name.
        start: the state before the first message.
        turns: maximum number of turns; None for the default.
        further: a later message of the user, or a list of them in JSON or YAML.
    """

    title: str = ""
    tools: str = ""
    message: str = ""
    expect: str = ""
    system: str = ""
    results: str = ""
    start: str = ""
    turns: int | None = None
    parallel: bool = False
    further: str = ""
    group: str = ""
    control: bool = False
    behaviour: str = ""
    workspace: str = ""
    settings: str = ""


def parse_draft(draft: CaseDraft) -> tuple[str, UserCase]:
    """Return title and case of a draft.

    A case that expects one call and nothing else, without later messages and faults, ends after the first answer unless
    `turns` is given.

    Raises:
        DraftError: the draft is not valid; the exception has at most MAX_PROBLEMS_SHOWN problems of the case.
    """
    errors: dict[str, list[str]] = defaultdict(list)
    document: JsonObject = {name: getattr(draft, name) for name in _PLAIN_FIELDS}
    for part, field in _FIELD_BY_PART.items():
        text = getattr(draft, field)
        try:
            document[part] = _parse_part(part, text)
        except DocumentError as error:
            errors[field].append(_describe_error(error))
    try:
        check_length(draft.system)
    except DocumentError as error:
        errors["system"].append(error.message)
    unreadable_fields = set(errors)
    if draft.system.strip() and "message" not in unreadable_fields:
        document["messages"] = [{"role": "system", "content": draft.system}, *_build_messages(document["messages"])]
    for part in ("results", "initial"):
        document[part] = document.get(part) or {}
    if draft.turns is None and _is_single_call(document):
        document["turns"] = 1
    try:
        case = parse_case(document)
    except InvalidCaseError as error:
        for problem in error.problems[:MAX_PROBLEMS_SHOWN]:
            _add_problem(problem, draft, document, errors=errors, unreadable_fields=unreadable_fields)
        raise DraftError(dict(errors)) from error
    if errors:
        raise DraftError(dict(errors))
    return draft.title.strip()[:MAX_TITLE_CHARS] or build_default_title(case), case


def build_draft(title: str, case: UserCase) -> CaseDraft:
    """Return the draft of an existing case for editing.

    A form field cannot contain lone surrogates. A text with them stays in the JSON of the messages, which escapes them.
    """
    messages = list(case.messages)
    system = ""
    if len(messages) > 1 and messages[0].get("role") == "system" and _is_encodable_text(messages[0].get("content")):
        system = messages.pop(0)["content"]
    is_plain_text = (
        len(messages) == 1
        and set(messages[0]) == {"role", "content"}
        and _is_encodable_text(messages[0]["content"])
        and not _MESSAGES_PATTERN.match(messages[0]["content"])
    )
    return CaseDraft(
        title=title,
        tools=render_json(list(case.tools)) if case.tools else "",
        message=messages[0]["content"] if is_plain_text else render_json(messages),
        expect=render_json(_shorten_expectation(build_expectation_json(case))),
        system=system,
        results=render_json(case.results) if case.results else "",
        start=render_json(case.initial) if case.initial else "",
        turns=case.turns,
        parallel=case.parallel,
        further=render_json(list(case.further)) if case.further else "",
        group=case.group,
        control=case.control,
        behaviour=case.behaviour,
        workspace=render_json(case.workspace) if case.workspace else "",
        settings=render_json(case.settings) if case.settings else "",
    )


def render_message(text: str) -> str:
    """Return one message of the user as text of the field `message`.

    A message that looks like a list of messages is wrapped in a list, so that it is not parsed as one.
    """
    return render_json(_build_messages(text)) if _MESSAGES_PATTERN.match(text) else text


def render_json(value: Any) -> str:
    """Return indented JSON; non-ASCII characters are escaped only if UTF-8 cannot encode one of them."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if _is_encodable_text(text) else json.dumps(value, indent=2)


def _is_encodable_text(value: Any) -> bool:
    """Return whether a value is a text without lone surrogates, so that a form field can contain it."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_draft_values(draft: CaseDraft) -> JsonObject:
    """Return the fields of a valid draft, without the title, as JSON values.

    Returns:
        Values by field. A list of messages is under `messages`, with an empty `message`; else `messages` is None.

    Raises:
        DocumentError: a field cannot be read.
    """
    values: JsonObject = {name: getattr(draft, name) for name in ("system", *_PLAIN_FIELDS)}
    for part, field in _FIELD_BY_PART.items():
        values[field] = _parse_part(part, getattr(draft, field))
    message = values["message"]
    is_list = isinstance(message, list)
    return values | {"messages": message if is_list else None, "message": "" if is_list else message}


def _parse_part(part: str, text: str) -> Any:
    """Return the value of a part of the case, parsed from the text of its field.

    A blank text gives None, except for `messages`. A text that is not a list stays a text for `messages`, and becomes a
    list with this text for `further`.

    Args:
        part: key in the JSON document of a case.
        text: text of the field.

    Raises:
        DocumentError: the text cannot be read.
    """
    if part == "messages" and not _MESSAGES_PATTERN.match(text):
        check_length(text)
        return text
    if part == "further" and text.strip() and not _TEXT_LIST_PATTERN.match(text):
        check_length(text)
        return [text]
    return read_document(text) if text.strip() else None


def _build_messages(message: Any) -> list[Any]:
    return message if isinstance(message, list) else [{"role": "user", "content": message}]


def _is_single_call(document: JsonObject) -> bool:
    """Return whether the case expects one call and nothing else, and has neither later messages nor faults."""
    expect, results = parse_expectation(document.get("expect")), document["results"]
    entries = results.values() if isinstance(results, dict) else ()
    if document.get("further") or any(isinstance(entry, dict) and "fault" in entry for entry in entries):
        return False
    only_calls = isinstance(expect, dict) and not expect.keys() & {"state", "checks", "no_call"}
    return only_calls and isinstance(expect.get("calls"), list) and len(expect["calls"]) == 1


def _add_problem(
    problem: CaseProblem,
    draft: CaseDraft,
    document: JsonObject,
    *,
    errors: dict[str, list[str]],
    unreadable_fields: set[str],
) -> None:
    """Add a problem with its line to the errors of its field, unless another error is its cause.

    A problem is left out if its field cannot be read. A problem of `expect` or `results` is also left out if the tools
    cannot be read, or if the case has none and is not a control.
    """
    part, place = (str(problem.place[0]), problem.place[1:]) if problem.place else ("", ())
    # A problem of the whole case is shown at `expect`.
    field = _FIELD_BY_PART.get(part, part if part in _PLAIN_FIELDS else "expect")
    has_tools_error = "tools" in unreadable_fields or not (draft.tools.strip() or draft.control)
    if field in unreadable_fields or (has_tools_error and field in ("expect", "results")):
        return
    line = (
        find_line(getattr(draft, field), _find_typed_path(part, place, draft, document))
        if field in _FIELD_BY_PART.values()
        else None
    )
    errors[field].append(f"Line {line}: {problem.message}" if line and place else problem.message)


def _find_typed_path(
    part: str, place: tuple[str | int, ...], draft: CaseDraft, document: JsonObject
) -> tuple[str | int, ...]:
    """Return the path, in the text that the user entered, of a place in the parsed part.

    The two paths differ where parsing adds a level: it puts a call or a list of calls under `calls`, a tool into a list
    and a function into its wrapper. They also differ if the system prompt was put before the messages.
    """
    value = document.get(part)
    is_list = isinstance(value, list)
    if part == "expect" and place[:1] == ("calls",) and (is_list or "name" in (value or {})):
        return place[1:] if is_list else place[2:]
    if part == "tools" and place:
        tool = document[part][int(place[0])] if is_list else value
        rest = place[2:] if tool not in parse_tools([tool]) and place[1:2] == ("function",) else place[1:]
        return rest if isinstance(value, dict) else (place[0], *rest)
    if part == "messages" and draft.system.strip() and place and isinstance(place[0], int):
        return (place[0] - 1, *place[1:])
    return place


def _describe_error(error: DocumentError) -> str:
    position = f"Line {error.line}, column {error.column}: " if error.line else ""
    return f"{position}{error.message}"


def build_default_title(case: UserCase) -> str:
    """Return `TOOL, TOOL: MESSAGE`, the expected tools and the last message, truncated to MAX_DEFAULT_TITLE_CHARS."""
    message = " ".join(str(case.messages[-1]["content"]).split())
    names = ", ".join(dict.fromkeys(call.name for call in case.expect.calls))
    title = f"{names}: {message}" if names else message
    return title if len(title) <= MAX_DEFAULT_TITLE_CHARS else f"{title[: MAX_DEFAULT_TITLE_CHARS - 1]}…"


def build_expectation_json(case: UserCase) -> JsonObject:
    """Return the expectation as JSON values."""
    expectation: JsonObject = case_to_json(case)["expect"]
    return expectation


def _shorten_expectation(expect: JsonObject) -> Any:
    """Return the call alone if the expectation consists of one call, otherwise the expectation."""
    return expect["calls"][0] if set(expect) == {"calls"} and len(expect["calls"]) == 1 else expect
