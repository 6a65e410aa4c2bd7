"""Values in a question that may be arguments.

They are quoted texts, addresses, dates, times, codes, numbers and names.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

QUOTED, ADDRESS, DATE, CODE, NUMBER, NAME = "quoted", "address", "date", "code", "number", "name"
MAX_QUESTION_CHARS = 4000  # the rest of a question is not read
_PATTERNS = (
    (QUOTED, re.compile(r"[\"“«]([^\"“”«»]{1,500})[\"”»]|(?<!\w)['‘]([^'‘’]{1,500})['’](?!\w)")),
    (ADDRESS, re.compile(r"\bhttps?://[^\s\"<>]{1,500}|\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")),
    (DATE, re.compile(r"\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?\b|\b\d?\d:\d\d\b")),
    (CODE, re.compile(r"\b(?=[\w-]{0,40}\d)[A-Za-z][\w-]{0,40}\b")),
    (NUMBER, re.compile(r"(?<![\w.-])-?\d{1,15}(?:\.\d{1,10})?(?![\w-]|\.\d)")),
    (NAME, re.compile(r"(?<=[^.!?:\s] )[A-ZÀ-Ý][\w'’-]{0,60}(?: [A-ZÀ-Ý][\w'’-]{0,60}){0,4}")),
)
_BEFORE = re.compile(r"\s*(?:is|are|was|to|of|named|called|number|no\.?|nr\.?|id|[:=#])?\s*[#:\"“'‘]?")
_AFTER = re.compile(r"[\"”'’]?[\s-]*")


@dataclass(frozen=True, slots=True)
class TextValue:
    """Value in a question with its kind and position."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class QuestionValues:
    """Values of one question that are unused or used.

    Using a value also uses every value that overlaps it.
    """

    question: str
    unused: list[TextValue] = field(default_factory=list)
    used: list[TextValue] = field(default_factory=list)

    @classmethod
    def from_question(cls, question: str) -> "QuestionValues":
        """Find the values of a question; text after `MAX_QUESTION_CHARS` is ignored."""
        question = question[:MAX_QUESTION_CHARS]
        return cls(question, [piece for kind, pattern in _PATTERNS for piece in _find_values(kind, pattern, question)])

    def find_near(self, word: str, *kinds: str) -> Iterator[TextValue]:
        """Yield unused values of these kinds right after the word, as in `order 17`.

        Numbers are also found right before it, as in `3 days`.
        """
        for mention in re.finditer(rf"\b{re.escape(word)}(?:e?s)?\b", self.question, re.IGNORECASE):
            for piece in self.list_kinds(*kinds):
                behind = piece.start >= mention.end() and _BEFORE.fullmatch(self.question, mention.end(), piece.start)
                before = piece.end <= mention.start() and _AFTER.fullmatch(self.question, piece.end, mention.start())
                if behind or (before and piece.kind == NUMBER):
                    yield piece

    def list_kinds(self, *kinds: str) -> Iterator[TextValue]:
        """Yield unused values in the order of the kinds, then by position."""
        for kind in kinds:
            yield from (piece for piece in tuple(self.unused) if piece.kind == kind)

    def mark_used(self, taken: TextValue) -> None:
        """Mark a value, and every value that overlaps it, as used."""
        self.used += [piece for piece in self.unused if piece.end > taken.start and piece.start < taken.end]
        self.unused = [piece for piece in self.unused if piece not in self.used]

    def find_text(self, text: str) -> TextValue | None:
        """Return the unused value with this text, ignoring case; None without one."""
        return next((piece for piece in self.unused if piece.text.lower() == text.lower()), None)

    def is_used(self, text: str) -> bool:
        """Return whether all values with this text are used; False when there is none."""
        return self.find_text(text) is None and any(piece.text == text for piece in self.used)


def _find_values(kind: str, pattern: re.Pattern[str], question: str) -> Iterator[TextValue]:
    for found in pattern.finditer(question):
        group = found.lastindex or 0
        yield TextValue(kind, found[group], found.start(group), found.end(group))
