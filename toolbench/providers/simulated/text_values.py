"""What stands in a question that an argument may be: quoted texts, addresses, dates, times, codes, numbers, names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

QUOTED, ADDRESS, DATE, CODE, NUMBER, NAME = "quoted", "address", "date", "code", "number", "name"
MAX_QUESTION_CHARS = 4000  # of a question; what comes after them is not read
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
    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class QuestionValues:
    """Those of one question, and which were taken: what overlaps one that was taken is gone with it."""

    question: str
    unused: list[TextValue] = field(default_factory=list)
    used: list[TextValue] = field(default_factory=list)

    @classmethod
    def from_question(cls, question: str) -> "QuestionValues":
        question = question[:MAX_QUESTION_CHARS]
        return cls(question, [piece for kind, pattern in _PATTERNS for piece in _find_values(kind, pattern, question)])

    def find_near(self, word: str, *kinds: str) -> Iterator[TextValue]:
        """Pieces of these kinds that stand right behind the word, or right before it: `order 17`, `3 days`."""
        for mention in re.finditer(rf"\b{re.escape(word)}(?:e?s)?\b", self.question, re.IGNORECASE):
            for piece in self.list_kinds(*kinds):
                behind = piece.start >= mention.end() and _BEFORE.fullmatch(self.question, mention.end(), piece.start)
                before = piece.end <= mention.start() and _AFTER.fullmatch(self.question, piece.end, mention.start())
                if behind or (before and piece.kind == NUMBER):
                    yield piece

    def list_kinds(self, *kinds: str) -> Iterator[TextValue]:
        """In the order of the kinds, then as they stand."""
        for kind in kinds:
            yield from (piece for piece in tuple(self.unused) if piece.kind == kind)

    def mark_used(self, taken: TextValue) -> None:
        self.used += [piece for piece in self.unused if piece.end > taken.start and piece.start < taken.end]
        self.unused = [piece for piece in self.unused if piece not in self.used]

    def find_text(self, text: str) -> TextValue | None:
        """The piece that says this, in whatever case, if it is left."""
        return next((piece for piece in self.unused if piece.text.lower() == text.lower()), None)

    def is_used(self, text: str) -> bool:
        """Whether all that says this was taken."""
        return self.find_text(text) is None and any(piece.text == text for piece in self.used)


def _find_values(kind: str, pattern: re.Pattern[str], question: str) -> Iterator[TextValue]:
    for found in pattern.finditer(question):
        group = found.lastindex or 0
        yield TextValue(kind, found[group], found.start(group), found.end(group))
