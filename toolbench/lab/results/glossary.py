"""Terms of `docs/glossary.md` that pages use, for the page Help and the command palette."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from django.utils.text import slugify

from toolbench.installation import ASSETS

CODE_SECTION = "Code"  # of terms that no page uses
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")  # Markdown such as [drift test](trend.md#drift-test)


@dataclass(frozen=True, slots=True)
class GlossaryTerm:
    """Term with its meaning, in which code is written between backticks.

    Attributes:
        stored_as: the name in columns, JSON keys, addresses or options; "" if it is the term itself.
    """

    name: str
    meaning: str
    stored_as: str

    @property
    def anchor(self) -> str:
        """Return the fragment that leads to the term on the page Help, such as `cell`, made from its first name."""
        return slugify(self.name.partition(",")[0])

    def matches(self, words: list[str]) -> bool:
        """Return whether each word is in the name, meaning or stored name; the words must be in lower case."""
        text = f"{self.name} {self.meaning} {self.stored_as}".lower()
        return all(word in text for word in words)


@cache
def read_glossary() -> dict[str, tuple[GlossaryTerm, ...]]:
    """Return the terms of the glossary that pages use, by the title of their section."""
    text = (ASSETS / "docs" / "glossary.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", _LINK.sub(r"\1", text), flags=re.MULTILINE)
    parts = (section.partition("\n") for section in sections)
    return {title: tuple(_iter_terms(table)) for title, _, table in parts if title != CODE_SECTION}


def find_terms(text: str) -> tuple[GlossaryTerm, ...]:
    """Return the terms with all words of a text, ignoring case; first those whose name contains the whole text."""
    words = text.lower().split()
    found = [term for terms in read_glossary().values() for term in terms if term.matches(words)] if words else []
    return tuple(sorted(found, key=lambda term: text.strip().lower() not in term.name.lower()))


def _iter_terms(table: str) -> Iterator[GlossaryTerm]:
    """Yield the terms of a Markdown table, whose first two lines are the column heads and a rule."""
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    for name, meaning, stored_as in rows[2:]:
        yield GlossaryTerm(name.strip(), meaning.strip(), stored_as.strip())
