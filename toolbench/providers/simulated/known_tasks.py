"""Errands a player knows by heart: from a question's wording to the calls it wants and the reply after them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from string import Template
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.providers.simulated.chat_request import Conversation

ERRANDS = Path(__file__).parent.parent / "data" / "errands.json"
NAME = re.compile(r"\$\{?(\w+)\}?", re.ASCII)
RECENT = 2000  # questions whose errand is remembered


@dataclass(frozen=True, slots=True)
class Errand:
    """What is to be called, as (tool, arguments), and `says`, the reply with `$names` from question and results."""

    calls: tuple[tuple[str, JsonObject], ...]
    together: bool
    says: str
    values: JsonObject


@dataclass(frozen=True, slots=True)
class _Known:
    """A row: `fact` is a sentence to be found in what was said, which tells more names; `numbers` are names that stand
    for numbers."""

    patterns: tuple[re.Pattern[str], ...]
    row: JsonObject


def errand_of(conversation: Conversation) -> Errand | None:
    """The errand whose wording is the question's last line; None for any other question."""
    return _errand(conversation.question, conversation.before)


def reply_of(conversation: Conversation) -> str:
    """The reply that ends an errand; "" where nothing is to be said or a result it needs is missing."""
    errand = errand_of(conversation)
    if errand is None or not errand.says:
        return ""
    told = {name: value for report in conversation.reports if report.ok for name, value in _scalars(report.data)}
    try:
        return Template(errand.says).substitute({**errand.values, **told})
    except KeyError:
        return ""


@lru_cache(maxsize=RECENT)
def _errand(question: str, before: str) -> Errand | None:
    asked = question.rstrip().rsplit("\n", 1)[-1]
    for known in _all_known():
        for pattern in known.patterns:
            if found := pattern.fullmatch(asked):
                return _filled(known.row, found.groupdict(), f"{before}\n{question}")
    return None


def _filled(row: JsonObject, found: Mapping[str, str], said: str) -> Errand | None:
    values: JsonObject = dict(found)
    if "fact" in row:
        fact = pattern_of(row["fact"], values).search(said)
        if fact is None:
            return None
        values |= fact.groupdict()
    values |= {name: int(values[name]) for name in row.get("numbers", ()) if name in values}
    calls = ((_text(call["tool"], values), fill(call["arguments"], values)) for call in row["calls"])
    named = tuple((name.replace(" ", "_"), arguments) for name, arguments in calls)
    return Errand(named, row.get("together", False), row.get("says", ""), values)


def pattern_of(text: str, known: Mapping[str, object]) -> re.Pattern[str]:
    """A wording as a pattern: `$name` stands for its value where it is known, else for anything on the line."""
    parts, named = [], set()
    for place, part in enumerate(NAME.split(text)):
        if place % 2 == 0:
            parts.append(re.escape(part))
        elif part in known:
            parts.append(re.escape(str(known[part])))
        else:
            parts.append(f"(?P={part})" if part in named else f"(?P<{part}>.+?)")
            named.add(part)
    return re.compile("".join(parts))


def fill(value: Any, values: JsonObject) -> Any:
    """A text that is nothing but a name becomes the value itself."""
    if isinstance(value, str):
        alone = NAME.fullmatch(value)
        return values[alone[1]] if alone else _text(value, values)
    if isinstance(value, list):
        return [fill(one, values) for one in value]
    return {key: fill(one, values) for key, one in value.items()} if isinstance(value, dict) else value


def _text(text: str, values: JsonObject) -> str:
    return Template(text).substitute(values)


def _scalars(data: Any) -> Iterator[tuple[str, Any]]:
    """Names and values anywhere inside a result."""
    if isinstance(data, list):
        for one in data:
            yield from _scalars(one)
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _scalars(value) if isinstance(value, (dict, list)) else ((name, value),)


@cache
def _all_known() -> tuple[_Known, ...]:
    rows = json.loads(ERRANDS.read_text(encoding="utf-8"))
    return tuple(_Known(tuple(pattern_of(text, {}) for text in row["text"]), row) for row in rows)
