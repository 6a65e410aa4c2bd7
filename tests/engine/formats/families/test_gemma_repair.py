"""Tests that the expressions of the Gemma repair take time in proportion to the text."""

import re

import pytest

from toolbench.engine.formats.families import gemma_repair

PATTERNS = {name: item.pattern for name, item in vars(gemma_repair).items() if isinstance(item, re.Pattern)}
_CLASS_OR_ESCAPE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]")
_BACKTRACKS = re.compile(r"[*+](?!\+)(?<![*+]\+)|\{\d*,\}(?!\+)")


def _list_unbounded_quantifiers(pattern: str) -> list[str]:
    """Return the quantifiers without a limit that may give characters back."""
    return _BACKTRACKS.findall(_CLASS_OR_ESCAPE.sub("x", pattern))


@pytest.mark.parametrize("name", PATTERNS)
def test_gemma_repair_expression_has_no_unbounded_quantifier(name: str) -> None:
    """Require a limit or a possessive quantifier.

    An expression that starts at every character and may run to the end of the text takes quadratic time. Counting
    function calls does not show that.
    """
    assert _list_unbounded_quantifiers(PATTERNS[name]) == []


@pytest.mark.parametrize(
    ("pattern", "quantifiers"),
    [(r"[\s,]\s*:", ["*"]), (r"\w+\s{2,}", ["+", "{2,}"]), (r"[*+]\+\s{0,8}[^,]*+x", []), (r"a++b", [])],
)
def test_unbounded_quantifier_is_found_in_expression_with_one(pattern: str, quantifiers: list[str]) -> None:
    assert _list_unbounded_quantifiers(pattern) == quantifiers
