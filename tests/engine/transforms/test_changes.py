from toolbench.engine.transforms.changes import MAX_SIDE_LENGTH, list_changes


def test_equal_values_show_no_change() -> None:
    assert list_changes({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == ()


def test_added_removed_and_replaced_places_have_their_paths() -> None:
    before = {"a": 1, "b": {"c": [1, 2]}, "gone": "x"}
    after = {"a": 1.5, "b": {"c": [1, 3]}, "new": None}
    assert list_changes(before, after) == (
        ("$.a", "1", "1.5"),
        ("$.b.c[1]", "2", "3"),
        ("$.gone", '"x"', ""),
        ("$.new", "", "null"),
    )


def test_one_and_true_are_told_apart() -> None:
    assert list_changes({"a": 1}, {"a": True}) == (("$.a", "1", "true"),)


def test_lists_of_another_length_change_as_a_whole() -> None:
    assert list_changes([1], [1, 2]) == (("$", "[1]", "[1,2]"),)


def test_what_is_shown_of_either_side_is_bounded() -> None:
    ((_, before, after),) = list_changes("x" * 10_000, {"a": ["y" * 10_000]})
    assert len(before) <= MAX_SIDE_LENGTH
    assert len(after) <= MAX_SIDE_LENGTH
