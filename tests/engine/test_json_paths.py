import pytest

from toolbench.engine.json_paths import find_list_index, follow_reference, render_json_path


def test_render_json_path_quotes_names_with_special_characters() -> None:
    assert render_json_path(["ops", 0, "a.b", "c"]) == '$.ops[0]["a.b"].c'
    assert render_json_path([]) == "$"


@pytest.mark.parametrize(("part", "index"), [("0", 0), ("1", 1), ("2", None), ("²", None), ("-1", None), ("", None)])
def test_find_list_index_accepts_indexes_of_the_list_only(part: str, index: int | None) -> None:
    assert find_list_index(["a", "b"], part) == index


def test_find_list_index_accepts_no_index_of_thousands_of_digits() -> None:
    assert find_list_index(["a"], "0" * 5_000) is None


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("#", {"a/b": [{"c~": 1}], "": 2}),
        ("#/a~1b/0/c~0", 1),
        ("#/a%2Fb/0/c%7E", 1),
        ("#/", 2),
        ("#/a~1b/0", {"c~": 1}),
    ],
)
def test_follow_reference_returns_part_of_document(reference: str, value: object) -> None:
    assert follow_reference({"a/b": [{"c~": 1}], "": 2}, reference) == value


@pytest.mark.parametrize("reference", ["#/x", "#/a/1", "#/a/0/b", "#/a/b"])
def test_follow_reference_to_nothing_raises_key_error(reference: str) -> None:
    with pytest.raises(KeyError):
        follow_reference({"a": [1]}, reference)
