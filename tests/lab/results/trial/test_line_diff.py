"""Hunks of two lists of lines."""

from toolbench.lab.results.trial.line_diff import MAX_COMPARED_LINES, build_hunks


def build_marked_lines(left: list[str], right: list[str]) -> tuple[list[tuple[str, str]], ...]:
    return tuple([(line.mark, line.text) for line in side] for side in build_hunks(left, right))


def test_build_hunks_keeps_two_lines_of_context() -> None:
    same = [f"line {number}" for number in range(10)]
    left, right = build_marked_lines([*same, "Done."], [*same, "Not yet.", "So."])
    assert left == [("skip", "… 8 equal lines"), ("", "line 8"), ("", "line 9"), ("chg", "Done.")]
    assert right[-2:] == [("chg", "Not yet."), ("chg", "So.")]


def test_build_hunks_finds_a_difference_deep_in_a_huge_text() -> None:
    same = ["x"] * 300_000
    left, right = build_hunks([*same, "a", *same], [*same, "b", *same])
    assert [line.text for line in left if line.mark == "chg"] == ["a"]
    assert len(left) < MAX_COMPARED_LINES
    assert left[-1].text == "… 299,998 more lines"
    assert right[0].text == "… 299,998 equal lines"


def test_build_hunks_escapes_nul_and_lone_surrogates() -> None:
    left, _ = build_marked_lines(["a\0\ud800"], ["b"])
    assert left == [("chg", "a␀\\ud800")]
