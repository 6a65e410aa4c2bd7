"""The examples of the documentation run as they are printed."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
WITH_EXAMPLES = sorted(page for page in DOCS.glob("*.md") if ">>> " in page.read_text("utf-8"))


def test_there_are_examples() -> None:
    assert "from-python.md" in [page.name for page in WITH_EXAMPLES]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_the_examples_of_a_page_give_what_it_says(page: Path) -> None:
    tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")

    assert tried.attempted > 0
    assert tried.failed == 0
