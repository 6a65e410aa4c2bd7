import pytest

from toolbench.evals.user_cases.documents import DocumentError, find_line, read_document


def refused(text: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    return caught.value


def test_json_and_yaml_give_the_same_value() -> None:
    assert read_document('{"name": "f", "arguments": {"n": 1}}') == read_document("name: f\narguments:\n  n: 1\n")


def test_bad_json_is_said_with_the_parsers_line_and_column() -> None:
    error = refused('[\n  {"name": "f",}\n]')
    assert (error.line, error.column) == (2, 16)


def test_bad_yaml_is_said_with_the_parsers_line() -> None:
    assert refused("name: f\narguments: [1, 2\n").line == 3


def test_a_key_twice_is_refused_where_it_stands() -> None:
    for text in ("name: f\nname: g\n", '{"name": "f",\n"name": "g"}', '[{"a": {"b": 1,\n\t"b": 2}}]'):
        error = refused(text)
        assert error.line == 2
        assert error.message in ("the key name is here twice.", "the key b is here twice.")


@pytest.mark.parametrize("text", ["a: &x [1]\nb: *x\n", "!!python/object/apply:os.system ['x']", "a: !!set {b}"])
def test_yaml_is_plain_data_only(text: str) -> None:
    assert refused(text).line


def test_dates_times_and_words_stay_texts_as_they_would_in_json() -> None:
    read = read_document("day: 2026-11-22\ntime: 12:30\nanswer: no\nsure: true\nn: -1.5e3\nnone:")
    assert read == {"day": "2026-11-22", "time": "12:30", "answer": "no", "sure": True, "n": -1500.0, "none": None}


@pytest.mark.parametrize("text", ["[" * 100_000, "[NaN]", "x" * 2_000_000, "a: 1e999", "[1e999]", "1: 2"])
def test_what_no_json_can_hold_is_refused(text: str) -> None:
    assert refused(text).message


def test_a_place_is_found_again_in_the_text_also_with_tabs() -> None:
    text = '[\n\t{"name": "f",\n\t "arguments": {\n\t\t"n": 1}}]'
    assert find_line(text, (0, "arguments", "n")) == 4
    assert find_line(text, (0, "arguments", "missing")) == 3
    assert find_line("{", ()) is None


def test_half_a_character_is_read_where_libyaml_would_refuse_it() -> None:
    assert read_document('half: "\\ud83d"\nday: 2026-11-22') == {"half": "\ud83d", "day": "2026-11-22"}
    assert refused('half: "\\ud83d"\nday: *x').line == 2


def test_long_yaml_is_refused_before_it_is_parsed() -> None:
    assert "write this as JSON" in refused("- 1\n" * 100_000).message
    assert find_line("[1]" + " " * 300_000, (0,)) is None


def test_repeated_key_is_placed_in_long_json_with_any_spelling() -> None:
    keys = ",\n".join(f'"key{number}": [{{"a": "}},{{"}}]' for number in range(20_000))
    error = refused(f'{{{keys},\n  "\\u006bey7": 0}}')
    assert (error.line, error.column, error.message) == (20_001, 3, "the key key7 is here twice.")
    assert read_document('[{"a": {"b": ["a"]}, "c": {"b": "a"}}, {"a": 1}]')


@pytest.mark.parametrize(
    "text", ["[" * 129 + "]" * 129, "a: " + "[" * 129, "- " * 200 + "1", '{"a":' * 129 + "1" + "}" * 129]
)
def test_document_nested_too_deeply_is_refused(text: str) -> None:
    assert "nested deeper than 128 levels" in refused(text).message


def test_document_nested_to_the_limit_is_read() -> None:
    for before in ("", "a: "):
        assert read_document(before + "[" * 127 + "1" + "]" * 127)


def test_long_yaml_with_half_a_character_is_refused() -> None:
    assert "surrogate escapes" in refused('a: "\\ud83d"\n' + "b: 1\n" * 20_000).message
