import pytest

from toolbench.evals.user_cases.documents import DocumentError, find_line, read_document


def read_error(text: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    return caught.value


def test_read_document_of_json_and_yaml_gives_the_same_value() -> None:
    assert read_document('{"name": "f", "arguments": {"n": 1}}') == read_document("name: f\narguments:\n  n: 1\n")


def test_read_document_error_in_json_has_line_and_column() -> None:
    error = read_error('[\n  {"name": "f",}\n]')
    assert (error.line, error.column) == (2, 16)


def test_read_document_error_in_yaml_has_its_line() -> None:
    assert read_error("name: f\narguments: [1, 2\n").line == 3


def test_read_document_refuses_a_repeated_key_at_its_line() -> None:
    for text in ("name: f\nname: g\n", '{"name": "f",\n"name": "g"}', '[{"a": {"b": 1,\n\t"b": 2}}]'):
        error = read_error(text)
        assert error.line == 2
        assert error.message in ("the key name occurs twice.", "the key b occurs twice.")


@pytest.mark.parametrize("text", ["a: &x [1]\nb: *x\n", "!!python/object/apply:os.system ['x']", "a: !!set {b}"])
def test_read_document_refuses_yaml_that_is_no_plain_data(text: str) -> None:
    assert read_error(text).line


def test_read_document_keeps_dates_times_and_words_as_texts() -> None:
    read = read_document("day: 2026-11-22\ntime: 12:30\nanswer: no\nsure: true\nn: -1.5e3\nnone:")
    assert read == {"day": "2026-11-22", "time": "12:30", "answer": "no", "sure": True, "n": -1500.0, "none": None}


@pytest.mark.parametrize("text", ["[" * 100_000, "[NaN]", "x" * 2_000_000, "a: 1e999", "[1e999]", "1: 2"])
def test_read_document_refuses_what_json_cannot_represent(text: str) -> None:
    assert read_error(text).message


def test_find_line_finds_a_path_in_text_with_tabs() -> None:
    text = '[\n\t{"name": "f",\n\t "arguments": {\n\t\t"n": 1}}]'
    assert find_line(text, (0, "arguments", "n")) == 4
    assert find_line(text, (0, "arguments", "missing")) == 3
    assert find_line("{", ()) is None


def test_read_document_accepts_a_lone_surrogate() -> None:
    assert read_document('half: "\\ud83d"\nday: 2026-11-22') == {"half": "\ud83d", "day": "2026-11-22"}
    assert read_error('half: "\\ud83d"\nday: *x').line == 2


def test_read_document_joins_surrogate_pairs_in_yaml_as_in_json() -> None:
    for value in ('"\\ud83d\\ude00 \\ude00\\ud83d"', '"\\ud83d\\\n  \\ude00 \\ude00\\ud83d"'):
        assert read_document(f"a: {value}") == {"a": "\U0001f600 \ude00\ud83d"}
    assert read_document('{"a": "\\ud83d\\ude00"}') == read_document('a: "\\ud83d\\ude00"')
    assert read_error('"\\ud83d\\ude00": 1\n\U0001f600: 2').message == "the key \U0001f600 occurs twice."


def test_read_document_refuses_long_yaml() -> None:
    assert "write this as JSON" in read_error("- 1\n" * 100_000).message
    assert find_line("[1]" + " " * 300_000, (0,)) is None


def test_read_document_repeated_key_in_long_json_has_line_and_column() -> None:
    keys = ",\n".join(f'"key{number}": [{{"a": "}},{{"}}]' for number in range(20_000))
    error = read_error(f'{{{keys},\n  "\\u006bey7": 0}}')
    assert (error.line, error.column, error.message) == (20_001, 3, "the key key7 occurs twice.")
    assert read_document('[{"a": {"b": ["a"]}, "c": {"b": "a"}}, {"a": 1}]')


@pytest.mark.parametrize(
    "text",
    [
        "[" * 129 + "]" * 129,
        "a: " + "[" * 128 + "]" * 128,
        "a: " + "[" * 127 + "{}" + "]" * 127,
        "- " * 129 + "1",
        "- " * 129 + "{}",
        '{"a":' * 129 + "1" + "}" * 129,
    ],
)
def test_read_document_refuses_nesting_over_128_levels(text: str) -> None:
    assert "nested deeper than 128 levels" in read_error(text).message


def test_read_document_accepts_nesting_to_the_limit() -> None:
    for before in ("", "a: "):
        assert read_document(before + "[" * 127 + "1" + "]" * 127)
        assert read_document(before + "[" * 127 + "]" * 127)
    assert read_document("[" * 128 + "]" * 128)
    assert read_document("- " * 128 + "1")


def test_read_document_refuses_long_yaml_with_a_lone_surrogate() -> None:
    assert "surrogate escapes" in read_error('a: "\\ud83d"\n' + "b: 1\n" * 20_000).message
