"""Code view of bodies: lines with paths, marks and limits."""

from hypothesis import given
from hypothesis import strategies as st

from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.lab.traces.code_view import MAX_LINES, mark_bad_paths, mark_differences, render_body, render_value


def test_render_body_json_has_path_of_every_line() -> None:
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


def test_mark_bad_paths_marks_path_and_children_only() -> None:
    code = mark_bad_paths(render_body(b'{"op": {"a": 1}, "ops": 2}'), ["$.op"])
    assert [line.text.strip() for line in code.lines if line.mark == "bad"] == ['"op": {', '"a": 1', "},"]


def test_mark_bad_paths_marks_keys_that_are_no_plain_words() -> None:
    schema = {"type": "object", "properties": {"a b": {"type": "integer"}, "c-d": {"type": "object"}}}
    arguments = {"a b": "x", "c-d": {"e f": 1}, "g": 2}
    paths = [error.path for error in list_schema_errors(ToolDefinition("f", "", schema), arguments)]
    assert paths == ['$["a b"]']
    code = mark_bad_paths(render_value(arguments), [*paths, '$["c-d"]["e f"]'])
    assert [line.text.strip() for line in code.lines if line.mark == "bad"] == ['"a b": "x",', '"e f": 1']


def test_mark_differences_marks_differing_lines_on_both_sides() -> None:
    left, right = mark_differences(render_body(b'{"a": 1, "b": 2}'), render_body(b'{"a": 1, "b": 3}'))
    assert [line.text.strip() for line in left.lines if line.mark] == ['"b": 2']
    assert [line.text.strip() for line in right.lines if line.mark] == ['"b": 3']


def test_render_body_deeply_nested_json_is_shown_as_text() -> None:
    assert render_body(b"[" * 100_000).lines[0].text.startswith("[[[")


def test_render_value_with_many_lines_is_truncated() -> None:
    code = render_value(list(range(5000)))
    assert code.is_truncated
    assert len(code.lines) == MAX_LINES


def test_render_body_larger_than_its_bytes_is_marked_truncated() -> None:
    code = render_body(b'{"a": 1}', size=50_000_000)
    assert code.is_truncated
    assert [line.text for line in code.lines] == ['{"a": 1}']


@given(st.binary(max_size=400))
def test_render_body_of_any_bytes_gives_encodable_lines(body: bytes) -> None:
    for line in render_body(body).lines:
        assert "\0" not in line.text
        line.text.encode("utf-8")
