"""Known tasks in system instructions: which calls their known sentences require."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.knowledge.tasks import NAME_PATTERN, build_pattern, fill_names

TASKS_PATH = Path(__file__).parents[2] / "data" / "instruction_tasks.json"
MAX_CACHED_INSTRUCTIONS = 2000
TASK_MARK = "/draft/"  # part of every known task; instructions without it are not searched
Calls = tuple[tuple[str, JsonObject], ...]


@dataclass(frozen=True, slots=True)
class KnownSentence:
    """Row of the table of known sentences.

    Attributes:
        patterns: its wordings, in every version.
        calls: the calls that it requires, with `$names` from this sentence or an earlier one.
        names: those `$names`.
        with_next: whether its calls share one message with those of the next sentence.
        without: arguments that no call of the task may have.
    """

    patterns: tuple[re.Pattern[str], ...]
    calls: tuple[JsonObject, ...]
    names: frozenset[str]
    with_next: bool
    without: tuple[str, ...]

    def match(self, line: str) -> Mapping[str, str] | None:
        """Return the values that the line gives to the names; None if it is another sentence."""
        found = next((found for pattern in self.patterns if (found := pattern.fullmatch(line))), None)
        return None if found is None else found.groupdict()


def find_known_messages(instructions: str, workspace_id: str) -> tuple[Calls, ...]:
    """Return the calls that known sentences require, message by message; () if there are none.

    Args:
        instructions: every system text, a sentence of the task on each line.
        workspace_id: as the user gave it; "" omits it from every call.
    """
    found = _find_sentences(instructions) if TASK_MARK in instructions else ()
    left_out = {name for sentence, _ in found for name in sentence.without}
    left_out |= set() if workspace_id else {"workspace_id"}
    values = {"workspace_id": workspace_id}
    messages: list[Calls] = []
    joins = False
    for sentence, named in found:
        values |= named
        if not sentence.names <= values.keys():
            return ()
        calls = tuple(_build_call(call, values, left_out) for call in sentence.calls)
        if not calls:
            continue
        messages = [*messages[:-1], messages[-1] + calls] if joins else [*messages, calls]
        joins = sentence.with_next
    return tuple(messages)


def _build_call(call: JsonObject, values: Mapping[str, str], left_out: Collection[str]) -> tuple[str, JsonObject]:
    arguments = {name: value for name, value in call["arguments"].items() if name not in left_out}
    return call["tool"], fill_names(arguments, dict(values))


@lru_cache(maxsize=MAX_CACHED_INSTRUCTIONS)
def _find_sentences(instructions: str) -> tuple[tuple[KnownSentence, Mapping[str, str]], ...]:
    return tuple(_match_sentences(instructions))


def _match_sentences(instructions: str) -> Iterator[tuple[KnownSentence, Mapping[str, str]]]:
    for line in instructions.splitlines():
        for sentence in _load_sentences():
            values = sentence.match(line.removeprefix("- "))
            if values is not None:
                yield sentence, values
                break


@cache
def _load_sentences() -> tuple[KnownSentence, ...]:
    rows = json.loads(TASKS_PATH.read_text(encoding="utf-8"))
    return tuple(
        KnownSentence(
            patterns=tuple(build_pattern(text, {}) for text in row["sentences"]),
            calls=tuple(row["calls"]),
            names=frozenset(NAME_PATTERN.findall(json.dumps(row["calls"]))),
            with_next=row.get("with_next", False),
            without=tuple(row.get("without", ())),
        )
        for row in rows
    )
