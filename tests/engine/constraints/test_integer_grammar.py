import pytest

from benchmarks.grammar_matcher import GrammarMatcher
from toolbench.engine.constraints.integer_grammar import MAX_BOUND_DIGITS, MAX_DIGITS, build_integer_grammar

MAX_INT64 = 2**63 - 1


def is_allowed(minimum: int | None, maximum: int | None, number: int) -> bool:
    return GrammarMatcher(f"root ::= {build_integer_grammar(minimum, maximum)}").accepts(str(number))


@pytest.mark.parametrize(
    ("minimum", "maximum", "allowed", "refused"),
    [
        (None, None, [0, -7, 10**MAX_DIGITS - 1], [10**MAX_DIGITS, -(10**MAX_DIGITS)]),
        (0, MAX_INT64, [0, 10**17, MAX_INT64], [-1, MAX_INT64 + 1]),
        (-MAX_INT64, None, [-MAX_INT64, 10**18], [-MAX_INT64 - 1, 10**19]),
        (10**17, None, [10**17, 10**18 - 1], [10**17 - 1, 10**18]),
        (0, 10**400, [0, 10**MAX_BOUND_DIGITS - 1], [10**MAX_BOUND_DIGITS]),
        (10**70, None, [10**70], [10**70 + 1, 7]),
        (-(10**70), -(10**65), [-(10**70)], [-(10**MAX_BOUND_DIGITS - 1), -(10**65), -1, 0]),
        (None, -(10**70), [-(10**70)], [-(10**70) - 1, -1, 0]),
    ],
    ids=[
        "no bounds",
        "0 to int64",
        "negative bound",
        "minimum alone",
        "very large maximum",
        "very large minimum",
        "very low bounds",
        "very low maximum",
    ],
)
def test_build_integer_grammar_follows_large_bounds(
    minimum: int | None, maximum: int | None, allowed: list[int], refused: list[int]
) -> None:
    assert [number for number in allowed if not is_allowed(minimum, maximum, number)] == []
    assert [number for number in refused if is_allowed(minimum, maximum, number)] == []
