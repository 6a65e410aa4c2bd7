"""Known tasks in questions, with the calls that they require and the reply after these calls."""

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
NAME_PATTERN = re.compile(r"\$\{?(\w+)\}?", re.ASCII)  # `$name` or `${name}`
MAX_CACHED_QUESTIONS = 2000


@dataclass(frozen=True, slots=True)
class KnownTask:
    """Scripted solution of a task in a question.

    Attributes:
        calls: the calls to make, as (name of the tool, arguments).
        in_one_message: whether all calls belong in one message.
        reply_template: the final reply, in which `$names` stand for `values` or for fields of results; "" for none.
        values: the values by name, read from the question and from the `fact` of the task's row.
    """

    calls: tuple[tuple[str, JsonObject], ...]
    in_one_message: bool
    reply_template: str
    values: JsonObject


@dataclass(frozen=True, slots=True)
class _TaskRow:
    """Row of data/known_tasks.json.

    Attributes:
        patterns: the task's wordings, with a group for each `$name`.
        row: the row as it is in the file. `fact`, if present, is the wording of a sentence that the conversation must
            contain; further names get their values from it. `numbers` lists the names whose values are numbers.
    """

    patterns: tuple[re.Pattern[str], ...]
    row: JsonObject


def find_known_task(request: ChatRequest) -> KnownTask | None:
    """Return the known task whose wording matches the last line of the question.

    Returns:
        None if no wording matches, or if the conversation lacks the fact of the task.
    """
    return _match_question(request.question, request.earlier_text)


def render_final_reply(request: ChatRequest) -> str:
    """Return the reply that ends a known task; "" if the task has none or a required result is missing."""
    known_task = find_known_task(request)
    if known_task is None or not known_task.reply_template:
        return ""
    result_values = {
        name: value for report in request.reports if report.ok for name, value in _list_scalars(report.data)
    }
    try:
        return Template(known_task.reply_template).substitute({**known_task.values, **result_values})
    except KeyError:
        return ""


@lru_cache(maxsize=MAX_CACHED_QUESTIONS)
def _match_question(question: str, earlier_text: str) -> KnownTask | None:
    last_line = question.rstrip().rsplit("\n", 1)[-1]
    for task_row in _load_rows():
        for pattern in task_row.patterns:
            if match := pattern.fullmatch(last_line):
                return _build_known_task(task_row.row, match.groupdict(), f"{earlier_text}\n{question}")
    return None


def _build_known_task(row: JsonObject, question_values: Mapping[str, str], conversation: str) -> KnownTask | None:
    """Build the known task of a row; None if the conversation lacks the row's fact."""
    values: JsonObject = dict(question_values)
    if "fact" in row:
        fact = build_pattern(row["fact"], values).search(conversation)
        if fact is None:
            return None
        values |= fact.groupdict()
    values |= {name: int(values[name]) for name in row.get("numbers", ()) if name in values}
    # A value in a tool's name may have several words: `${verb}_${noun}` becomes `ship_gift_card`.
    calls = tuple(
        (_fill_text(call["tool"], values).replace(" ", "_"), fill_names(call["arguments"], values))
        for call in row["calls"]
    )
    return KnownTask(calls, row.get("together", False), row.get("says", ""), values)


def build_pattern(text: str, known_values: Mapping[str, object]) -> re.Pattern[str]:
    """Build a pattern from a wording, in which a `$name` matches its known value or else any text on the line.

    Args:
        text: the wording.
        known_values: values by name; any other name becomes a group, and its repetition matches the same text.
    """
    parts, group_names = [], set()
    for index, part in enumerate(NAME_PATTERN.split(text)):
        if index % 2 == 0:  # a text between two names
            parts.append(re.escape(part))
        elif part in known_values:
            parts.append(re.escape(str(known_values[part])))
        else:
            parts.append(f"(?P={part})" if part in group_names else f"(?P<{part}>.+?)")
            group_names.add(part)
    return re.compile("".join(parts))


def fill_names(template: Any, values: JsonObject) -> Any:
    """Replace each `$name` by its value in all texts of a JSON value, at any depth.

    A text that is only a `$name` becomes the value itself, which may be a number.

    Raises:
        KeyError: a name has no value.
    """
    if isinstance(template, str):
        single_name = NAME_PATTERN.fullmatch(template)
        return values[single_name[1]] if single_name else _fill_text(template, values)
    if isinstance(template, list):
        return [fill_names(item, values) for item in template]
    return {key: fill_names(item, values) for key, item in template.items()} if isinstance(template, dict) else template


def _fill_text(text: str, values: JsonObject) -> str:
    return Template(text).substitute(values)


def _list_scalars(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) for every field at any depth whose value is neither an object nor a list."""
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
