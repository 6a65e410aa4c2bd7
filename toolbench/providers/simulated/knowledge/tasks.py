"""Known tasks in questions: which calls a known wording requires, and the reply after them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from string import Template
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.chat_request import ChatRequest

KNOWN_TASKS_PATH = Path(__file__).parents[2] / "data" / "known_tasks.json"
NAME_PATTERN = re.compile(r"\$\{?(\w+)\}?", re.ASCII)
MAX_CACHED_QUESTIONS = 2000


@dataclass(frozen=True, slots=True)
class KnownTask:
    """Scripted solution of a question.

    Attributes:
        calls: the calls to make, as (tool, arguments).
        in_one_message: whether all calls belong in one message.
        reply_template: the final reply with `$names` from question and results, "" for none.
        values: values of the names in the question.
    """

    calls: tuple[tuple[str, JsonObject], ...]
    in_one_message: bool
    reply_template: str
    values: JsonObject


@dataclass(frozen=True, slots=True)
class _TaskRow:
    """Row of the table of known tasks.

    Its key `fact` is a sentence in the conversation that gives values to more names, and `numbers` lists the names
    whose values are numbers.
    """

    patterns: tuple[re.Pattern[str], ...]
    row: JsonObject


def find_known_task(conversation: ChatRequest) -> KnownTask | None:
    """Return the known task whose wording is the question's last line; None for any other question."""
    return _match_question(conversation.question, conversation.before)


def render_final_reply(conversation: ChatRequest) -> str:
    """Return the reply that ends a known task; "" when it has none or a required result is missing."""
    errand = find_known_task(conversation)
    if errand is None or not errand.reply_template:
        return ""
    facts = {name: value for report in conversation.reports if report.ok for name, value in _list_scalars(report.data)}
    try:
        return Template(errand.reply_template).substitute({**errand.values, **facts})
    except KeyError:
        return ""


@lru_cache(maxsize=MAX_CACHED_QUESTIONS)
def _match_question(question: str, before: str) -> KnownTask | None:
    last_line = question.rstrip().rsplit("\n", 1)[-1]
    for known in _load_rows():
        for pattern in known.patterns:
            if found := pattern.fullmatch(last_line):
                return _fill_row(known.row, found.groupdict(), f"{before}\n{question}")
    return None


def _fill_row(row: JsonObject, found: Mapping[str, str], sentence: str) -> KnownTask | None:
    values: JsonObject = dict(found)
    if "fact" in row:
        fact = build_pattern(row["fact"], values).search(sentence)
        if fact is None:
            return None
        values |= fact.groupdict()
    values |= {name: int(values[name]) for name in row.get("numbers", ()) if name in values}
    calls = ((_fill_text(call["tool"], values), fill_names(call["arguments"], values)) for call in row["calls"])
    named = tuple((name.replace(" ", "_"), arguments) for name, arguments in calls)
    return KnownTask(named, row.get("together", False), row.get("says", ""), values)


def build_pattern(text: str, known: Mapping[str, object]) -> re.Pattern[str]:
    """Build a pattern from a wording: `$name` matches its value where known, else any text on the line."""
    parts, named = [], set()
    for place, part in enumerate(NAME_PATTERN.split(text)):
        if place % 2 == 0:
            parts.append(re.escape(part))
        elif part in known:
            parts.append(re.escape(str(known[part])))
        else:
            parts.append(f"(?P={part})" if part in named else f"(?P<{part}>.+?)")
            named.add(part)
    return re.compile("".join(parts))


def fill_names(value: Any, values: JsonObject) -> Any:
    """Replace `$names` by their values at any depth; a text of one name only becomes the value itself."""
    if isinstance(value, str):
        alone = NAME_PATTERN.fullmatch(value)
        return values[alone[1]] if alone else _fill_text(value, values)
    if isinstance(value, list):
        return [fill_names(item, values) for item in value]
    return {key: fill_names(item, values) for key, item in value.items()} if isinstance(value, dict) else value


def _fill_text(text: str, values: JsonObject) -> str:
    return Template(text).substitute(values)


def _list_scalars(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and values at any depth of a result."""
    if isinstance(data, list):
        for item in data:
            yield from _list_scalars(item)
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _list_scalars(value) if isinstance(value, (dict, list)) else ((name, value),)


@cache
def _load_rows() -> tuple[_TaskRow, ...]:
    rows = json.loads(KNOWN_TASKS_PATH.read_text(encoding="utf-8"))
    return tuple(_TaskRow(tuple(build_pattern(text, {}) for text in row["text"]), row) for row in rows)
