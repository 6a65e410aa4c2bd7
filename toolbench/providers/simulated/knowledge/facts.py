"""Knowledge of a simulated model without tools: sums, a few facts, words of topics, notes."""

import json
import operator
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from toolbench.engine.types import JsonObject

KNOWLEDGE_PATH = Path(__file__).parents[2] / "data" / "knowledge.json"
# Dates do not match.
SUM_PATTERN = re.compile(r"(?<![\d-])(\d+)\s*(\+|(?<=\s)-(?=\s)|\*|×|plus|minus|times)\s*(\d+)(?![\d-])")
NOTE_PATTERN = re.compile(r"\bNote:.*?\blocker (\d+)", re.DOTALL)
OPERATORS = {
    "+": operator.add,
    "plus": operator.add,
    "-": operator.sub,
    "minus": operator.sub,
    "*": operator.mul,
    "×": operator.mul,
    "times": operator.mul,
}


def find_plain_answer(question: str) -> str:
    """Return a short answer, "" when the question is not a known one."""
    if noted := NOTE_PATTERN.search(question):
        return f"It is in locker {noted.group(1)}."
    if found := SUM_PATTERN.search(question):
        left, sign, right = found.groups()
        return f"{OPERATORS[sign](int(left), int(right))}"
    lowered = question.lower()
    return next(
        (fact["answer"] for fact in _load_knowledge()["facts"] if all(word in lowered for word in fact["words"])), ""
    )


def find_topic(question: str, topics: Sequence[str]) -> str | None:
    """Return the topic with the most words in the question; None when no topic has any."""
    words = f" {' '.join(re.findall(r'[a-z]+', question.lower()))} "
    known: dict[str, list[str]] = _load_knowledge()["topics"]
    scores = {topic: sum(f" {word} " in words for word in known.get(topic, [topic])) for topic in topics}
    best = max(scores, key=lambda topic: scores[topic], default=None)
    return best if best is not None and scores[best] else None


@cache
def load_stop_words() -> frozenset[str]:
    """Return words that do not show the subject of a question or a tool."""
    return frozenset(_load_knowledge()["empty_words"].split())


@cache
def _load_knowledge() -> JsonObject:
    known: JsonObject = json.loads(KNOWLEDGE_PATH.read_text(encoding="utf-8"))
    return known
