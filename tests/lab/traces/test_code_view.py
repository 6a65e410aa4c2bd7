"""Bytes become lines that can be read, whatever they are."""

from hypothesis import given
from hypothesis import strategies as st

from toolbench.lab.traces.code_view import MOST_LINES, blamed, code_of, code_of_value, compared


def test_json_is_laid_out_with_the_path_of_every_line() -> None:
    code = code_of(b'{"ops": [{"op": "set"}]}')
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
    code = blamed(code_of(b'{"op": {"a": 1}, "ops": 2}'), ["$.op"])
    assert [line.text.strip() for line in code.lines if line.mark == "bad"] == ['"op": {', '"a": 1', "},"]


def test_what_differs_is_marked_on_both_sides() -> None:
    left, right = compared(code_of(b'{"a": 1, "b": 2}'), code_of(b'{"a": 1, "b": 3}'))
    assert [line.text.strip() for line in left.lines if line.mark] == ['"b": 2']
    assert [line.text.strip() for line in right.lines if line.mark] == ['"b": 3']


def test_a_hundred_thousand_brackets_are_shown_as_text() -> None:
    assert code_of(b"[" * 100_000).lines[0].text.startswith("[[[")


def test_a_long_body_is_cut_and_says_so() -> None:
    code = code_of_value(list(range(5000)))
    assert code.cut
    assert len(code.lines) == MOST_LINES


def test_the_head_of_a_body_is_never_read_as_the_whole() -> None:
    code = code_of(b'{"a": 1}', size=50_000_000)
    assert code.cut
    assert [line.text for line in code.lines] == ['{"a": 1}']


@given(st.binary(max_size=400))
def test_no_bytes_break_it_and_every_line_can_be_encoded(body: bytes) -> None:
    for line in code_of(body).lines:
        assert "\0" not in line.text
        line.text.encode("utf-8")
