import re

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolbench.engine.constraints.regex import (
    MAX_CODE_POINT,
    Alternation,
    Branch,
    CharacterClass,
    Node,
    Repetition,
    complement_ranges,
    join_ranges,
    parse_pattern,
)

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda r: (r[0], r[0] + r[1])), max_size=5)


def render_node(node: Node) -> str:
    """Return the node as a regular expression of Python."""
    if isinstance(node, CharacterClass):
        return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in node.ranges) + "]"
    if isinstance(node, Repetition):
        return f"(?:{render_node(node.node)}){{{node.min_count},{'' if node.max_count is None else node.max_count}}}"
    if isinstance(node, Alternation):
        return f"(?:{'|'.join(map(render_node, node.options))})"
    return "".join(map(render_node, node.parts))


def matches_text(branches: tuple[Branch, ...], text: str) -> bool:
    patterns = (
        ("" if b.is_anchored_at_start else r"[\s\S]*")
        + render_node(b.node)
        + ("" if b.is_anchored_at_end else r"[\s\S]*")
        for b in branches
    )
    return any(re.fullmatch(pattern, text) for pattern in patterns)


@pytest.mark.parametrize(
    "pattern",
    [
        "abc",
        "^a|b$",
        r"^\d{2,3}$",
        r"[^\w-]+",
        r"^(?:ab|c)*d?$",
        r"\.\x41\u00fc",
        "^.$",
        r"^[\]\\^-]$",
        "",
        "^$",
        "a+?b",
    ],
)
@settings(max_examples=60)
@given(text=st.text("abcdAü.-]\\^_ 0129\n", max_size=6))
def test_parsed_pattern_matches_like_the_validator(pattern: str, text: str) -> None:
    branches = parse_pattern(pattern)
    assert branches is not None
    assert matches_text(branches, text) is jsonschema_rs.is_valid({"pattern": pattern}, text)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b",
        "(?<!a)b",
        r"(a)\1",
        r"\bfoo",
        r"\p{L}",
        "(?i)a",
        "(?P<n>a)",
        "a**",
        "[a",
        "(a",
        "a)",
        "a{2",
        "a{3,2}",
        "*",
        *["a^b", "a$b", r"\ud800", "[z-a]", "[[a]&&[b]]", "a{9999}", "(" * 30 + "a" + ")" * 30, "a" * 2000],
    ],
)
def test_unsupported_pattern_is_parsed_to_none(pattern: str) -> None:
    assert parse_pattern(pattern) is None


@given(ranges=RANGES, code=st.integers(0, 80))
def test_complement_ranges_has_exactly_the_other_characters(ranges: list[tuple[int, int]], code: int) -> None:
    is_inside = any(low <= code <= high for low, high in join_ranges(tuple(ranges)))
    assert is_inside is any(low <= code <= high for low, high in ranges)
    assert is_inside is not any(low <= code <= high for low, high in complement_ranges(tuple(ranges)))
    assert complement_ranges(complement_ranges(tuple(ranges))) == join_ranges(tuple(ranges))
    assert complement_ranges(()) == ((0, MAX_CODE_POINT),)
