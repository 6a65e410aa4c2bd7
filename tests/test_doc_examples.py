"""Examples of the documentation, run as doctests."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
WITH_EXAMPLES = sorted(page for page in DOCS.glob("*.md") if ">>> " in page.read_text("utf-8"))


def test_docs_have_examples() -> None:
    assert "from-python.md" in [page.name for page in WITH_EXAMPLES]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_doc_examples_of_page_print_documented_output(page: Path) -> None:
    results = doctest.testfile(str(page), module_relative=False, encoding="utf-8")

    assert results.attempted > 0
    assert results.failed == 0
