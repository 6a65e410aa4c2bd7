"""Known tasks in system instructions. A task is a sequence of known sentences that require calls."""

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
Calls = tuple[tuple[str, JsonObject], ...]  # (tool, arguments)


@dataclass(frozen=True, slots=True)
class KnownSentence:
    """Sentence of known tasks, with the calls that it requires.

    Attributes:
        patterns: the wordings of the sentence in all versions of the scenarios.
        calls: the calls; a `$name` in them stands for a value from this sentence or an earlier one, and
            `$workspace_id` for the id in the question.
        names: the names in `calls`, without the `$`.
        shares_message: whether the calls and those of the next sentence are in one message.
        omitted_arguments: arguments that no call of the task may have.
    """

    patterns: tuple[re.Pattern[str], ...]
    calls: tuple[JsonObject, ...]
    names: frozenset[str]
    shares_message: bool
    omitted_arguments: tuple[str, ...]

    def match(self, line: str) -> Mapping[str, str] | None:
        """Return the values of the names in a line; None if the line is not this sentence."""
        match = next((match for pattern in self.patterns if (match := pattern.fullmatch(line))), None)
        return None if match is None else match.groupdict()


def find_known_messages(instructions: str, workspace_id: str) -> tuple[Calls, ...]:
    """Return the calls that known sentences require, message by message.

    Args:
        instructions: all system texts, with each sentence of a task on a line of its own.
        workspace_id: the workspace id in the question; "" omits it from every call.

    Returns:
        () if there are no known sentences or a value for their calls is missing.
    """
    sentences = _find_sentences(instructions) if TASK_MARK in instructions else ()
    omitted_arguments = {name for sentence, _ in sentences for name in sentence.omitted_arguments}
    omitted_arguments |= set() if workspace_id else {"workspace_id"}
    values = {"workspace_id": workspace_id}
    messages: list[Calls] = []
    shares_message = False
    for sentence, sentence_values in sentences:
        values |= sentence_values
        if not sentence.names <= values.keys():
            return ()
        calls = tuple(_build_call(call, values, omitted_arguments) for call in sentence.calls)
        if not calls:
            continue
        messages = [*messages[:-1], messages[-1] + calls] if shares_message else [*messages, calls]
        shares_message = sentence.shares_message
    return tuple(messages)


def _build_call(
    call: JsonObject, values: Mapping[str, str], omitted_arguments: Collection[str]
) -> tuple[str, JsonObject]:
    arguments = {name: value for name, value in call["arguments"].items() if name not in omitted_arguments}
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
            shares_message=row.get("with_next", False),
            omitted_arguments=tuple(row.get("without", ())),
        )
        for row in rows
    )
