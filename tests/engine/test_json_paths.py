import pytest

from toolbench.engine.json_paths import find_list_index, render_json_path


def test_render_json_path_quotes_names_with_special_characters() -> None:
    assert render_json_path(["ops", 0, "a.b", "c"]) == '$.ops[0]["a.b"].c'
    assert render_json_path([]) == "$"


@pytest.mark.parametrize(("part", "index"), [("0", 0), ("1", 1), ("2", None), ("²", None), ("-1", None), ("", None)])
def test_find_list_index_accepts_indexes_of_the_list_only(part: str, index: int | None) -> None:
    assert find_list_index(["a", "b"], part) == index


def test_find_list_index_accepts_no_index_of_thousands_of_digits() -> None:
    assert find_list_index(["a"], "0" * 5_000) is None
