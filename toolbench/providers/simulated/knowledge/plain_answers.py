"""Answers that a simulated model gives without tools, and the words by which it recognises topics."""

import json
import operator
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from toolbench.engine.types import JsonObject

KNOWLEDGE_PATH = Path(__file__).parents[2] / "data" / "knowledge.json"
# Such as 12 + 30 or 6 times 7. The look-arounds exclude dates and ranges such as 2024-05-01. Numbers have at most 99
# digits, because Python refuses to convert numbers of thousands of digits.
CALCULATION_PATTERN = re.compile(
    r"(?<![\d-])(\d{1,99})\s*(\+|(?<=\s)-(?=\s)|\*|×|plus|minus|times)\s*(\d{1,99})(?![\d-])"
)
LOCKER_NOTE_PATTERN = re.compile(r"\bNote:.*?\blocker (\d+)", re.DOTALL)
OPERATORS = {
    "+": operator.add,
    "plus": operator.add,
    "-": operator.sub,
    "minus": operator.sub,
    "*": operator.mul,
    "×": operator.mul,
    "times": operator.mul,
}


def find_answer_without_tools(question: str) -> str:
    """Return the answer to a question that needs no tool; "" if it is not known.

    The answer is the locker number of a note in the question, the result of a calculation in it, or a known fact.
    """
    if note := LOCKER_NOTE_PATTERN.search(question):
        return f"It is in locker {note.group(1)}."
    if calculation := CALCULATION_PATTERN.search(question):
        left, sign, right = calculation.groups()
        return f"{OPERATORS[sign](int(left), int(right))}"
    question_text = question.lower()
    facts = _load_knowledge()["facts"]
    return next((fact["answer"] for fact in facts if all(word in question_text for word in fact["words"])), "")


def find_topic(question: str, topics: Sequence[str]) -> str | None:
    """Return the topic with the most words in the question; None if no topic has a word in it.

    If several topics have the same number of words, the first one is returned. A topic that is not in
    data/knowledge.json has its name as its only word.
    """
    question_words = f" {' '.join(re.findall(r'[a-z]+', question.lower()))} "
    topic_words: dict[str, list[str]] = _load_knowledge()["topics"]
    scores = {topic: sum(f" {word} " in question_words for word in topic_words.get(topic, [topic])) for topic in topics}
    best = max(scores, key=lambda topic: scores[topic], default=None)
    return best if best is not None and scores[best] else None


@cache
def load_stop_words() -> frozenset[str]:
    """Return words that are ignored when a question is compared with a tool."""
    return frozenset(_load_knowledge()["empty_words"].split())


@cache
def _load_knowledge() -> JsonObject:
    knowledge: JsonObject = json.loads(KNOWLEDGE_PATH.read_text(encoding="utf-8"))
    return knowledge
