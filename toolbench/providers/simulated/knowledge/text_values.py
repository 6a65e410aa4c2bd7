"""Values in a question that may be arguments: quoted texts, addresses, dates, codes, numbers, names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

QUOTED, ADDRESS, DATE, CODE, NUMBER, NAME = "quoted", "address", "date", "code", "number", "name"
MAX_QUESTION_CHARS = 4000  # the rest of a question is ignored
# An address is a URL or an e-mail address. A time without a date, such as 9:30, has the kind of a date. A code begins
# with a letter and contains a digit, such as ORD-17. A name is one to five capitalised words, of which the first does
# not begin a sentence.
_PATTERNS = (
    (QUOTED, re.compile(r"[\"“«]([^\"“”«»]{1,500})[\"”»]|(?<!\w)['‘]([^'‘’]{1,500})['’](?!\w)")),
    (ADDRESS, re.compile(r"\bhttps?://[^\s\"<>]{1,500}|\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}")),
    (DATE, re.compile(r"\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?\b|\b\d?\d:\d\d\b")),
    (CODE, re.compile(r"\b(?=[\w-]{0,40}\d)[A-Za-z][\w-]{0,40}\b")),
    (NUMBER, re.compile(r"(?<![\w.-])-?\d{1,15}(?:\.\d{1,10})?(?![\w-]|\.\d)")),
    (NAME, re.compile(r"(?<=[^.!?:\s] )[A-ZÀ-Ý][\w'’-]{0,60}(?: [A-ZÀ-Ý][\w'’-]{0,60}){0,4}")),
)
# Text between a word and the value after it, such as ` is #` in `order is #17`.
_WORD_TO_VALUE = re.compile(r"\s*(?:is|are|was|to|of|named|called|number|no\.?|nr\.?|id|[:=#])?\s*[#:\"“'‘]?")
_VALUE_TO_WORD = re.compile(r"[\"”'’]?[\s-]*")  # such as the space in `3 days`


@dataclass(frozen=True, slots=True)
class TextValue:
    """Value in a question with its kind and its position in characters; `end` is exclusive."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class QuestionValues:
    """Values of one question, unused and used.

    Attributes:
        question: the question, at most its first `MAX_QUESTION_CHARS` characters.
        unused: values that may still be assigned to an argument; by kind in the order of `_PATTERNS`, then by position.
        used: values that have been assigned, and values that overlap them.
    """

    question: str
    unused: list[TextValue] = field(default_factory=list)
    used: list[TextValue] = field(default_factory=list)

    @classmethod
    def from_question(cls, question: str) -> "QuestionValues":
        """Find the values in a question; all of them are unused."""
        question = question[:MAX_QUESTION_CHARS]
        return cls(question, [value for kind, pattern in _PATTERNS for value in _find_values(kind, pattern, question)])

    def find_near(self, word: str, *kinds: str) -> Iterator[TextValue]:
        """Yield unused values of these kinds that follow the word, as in `order 17` or `orders are 17`.

        If NUMBER is one of the kinds, numbers right before the word, as in `3 days`, are yielded as well.
        """
        for mention in re.finditer(rf"\b{re.escape(word)}(?:e?s)?\b", self.question, re.IGNORECASE):
            start, end = mention.span()
            for value in self.list_unused(*kinds):
                follows = value.start >= end and _WORD_TO_VALUE.fullmatch(self.question, end, value.start)
                precedes = value.end <= start and _VALUE_TO_WORD.fullmatch(self.question, value.end, start)
                if follows or (precedes and value.kind == NUMBER):
                    yield value

    def list_unused(self, *kinds: str) -> Iterator[TextValue]:
        """Yield the unused values of these kinds, in the order of the kinds, then by position."""
        for kind in kinds:
            yield from (value for value in tuple(self.unused) if value.kind == kind)

    def mark_used(self, used_value: TextValue) -> None:
        """Mark a value, and every value that overlaps it, as used."""
        start, end = used_value.start, used_value.end
        self.used += [value for value in self.unused if value.end > start and value.start < end]
        self.unused = [value for value in self.unused if value not in self.used]

    def find_text(self, text: str) -> TextValue | None:
        """Return the first unused value with this text, ignoring case, or None."""
        return next((value for value in self.unused if value.text.lower() == text.lower()), None)

    def is_used(self, text: str) -> bool:
        """Return whether a used value has exactly this text, and no unused value has it, ignoring case."""
        return self.find_text(text) is None and any(value.text == text for value in self.used)


def _find_values(kind: str, pattern: re.Pattern[str], question: str) -> Iterator[TextValue]:
    for match in pattern.finditer(question):
        group = match.lastindex or 0
        yield TextValue(kind, match[group], match.start(group), match.end(group))
