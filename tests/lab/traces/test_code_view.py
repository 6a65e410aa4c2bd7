"""Bytes become lines that can be read, whatever they are."""

from hypothesis import given
from hypothesis import strategies as st

from toolbench.lab.traces.code_view import MAX_LINES, mark_bad_paths, mark_differences, render_body, render_value


def test_json_is_laid_out_with_the_path_of_every_line() -> None:
    code = render_body(b'{"ops": [{"op": "set"}]}')
    assert [(line.text, line.path) for line in code.lines] == [
        ("{", "$"),
        ('  "ops": [', "$.ops"),
        ("    {", "$.ops[0]"),
        ('      "op": "set"', "$.ops[0].op"),
        ("    }", "$.ops[0]"),
        ("  ]", "$.ops"),
        ("}", "$"),
    ]


def test_blame_marks_the_path_and_all_below_it_but_no_namesake() -> None:
    code = mark_bad_paths(render_body(b'{"op": {"a": 1}, "ops": 2}'), ["$.op"])
    assert [line.text.strip() for line in code.lines if line.mark == "bad"] == ['"op": {', '"a": 1', "},"]


def test_what_differs_is_marked_on_both_sides() -> None:
    left, right = mark_differences(render_body(b'{"a": 1, "b": 2}'), render_body(b'{"a": 1, "b": 3}'))
    assert [line.text.strip() for line in left.lines if line.mark] == ['"b": 2']
    assert [line.text.strip() for line in right.lines if line.mark] == ['"b": 3']


def test_a_hundred_thousand_brackets_are_shown_as_text() -> None:
    assert render_body(b"[" * 100_000).lines[0].text.startswith("[[[")


def test_a_long_body_is_cut_and_says_so() -> None:
    code = render_value(list(range(5000)))
    assert code.cut
    assert len(code.lines) == MAX_LINES


def test_the_head_of_a_body_is_never_read_as_the_whole() -> None:
    code = render_body(b'{"a": 1}', size=50_000_000)
    assert code.cut
    assert [line.text for line in code.lines] == ['{"a": 1}']


@given(st.binary(max_size=400))
def test_no_bytes_break_it_and_every_line_can_be_encoded(body: bytes) -> None:
    for line in render_body(body).lines:
        assert "\0" not in line.text
        line.text.encode("utf-8")
