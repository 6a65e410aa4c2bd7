from toolbench.engine.transforms.changes import MAX_SIDE_LENGTH, list_changes


def test_list_changes_of_equal_values_is_empty() -> None:
    assert list_changes({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == ()


def test_list_changes_gives_paths_of_added_removed_and_replaced_values() -> None:
    before = {"a": 1, "b": {"c": [1, 2]}, "gone": "x"}
    after = {"a": 1.5, "b": {"c": [1, 3]}, "new": None}
    assert list_changes(before, after) == (
        ("$.a", "1", "1.5"),
        ("$.b.c[1]", "2", "3"),
        ("$.gone", '"x"', ""),
        ("$.new", "", "null"),
    )


def test_list_changes_quotes_names_that_are_not_plain_words() -> None:
    before = {"a.b[0]": {"x y": 1, "d": {"e.f": 1}}, 'say "it"': 1}
    after = {"a.b[0]": {"x y": 2, "d": {"e.f": 1}}, "new-key": 1}
    assert [path for path, _, _ in list_changes(before, after)] == [
        '$["a.b[0]"]["x y"]',
        '$["say \\"it\\""]',
        '$["new-key"]',
    ]


def test_list_changes_distinguishes_one_and_true() -> None:
    assert list_changes({"a": 1}, {"a": True}) == (("$.a", "1", "true"),)


def test_list_changes_of_lists_of_different_length_is_one_change() -> None:
    assert list_changes([1], [1, 2]) == (("$", "[1]", "[1,2]"),)


def test_list_changes_truncates_long_values() -> None:
    ((_, before, after),) = list_changes("x" * 10_000, {"a": ["y" * 10_000]})
    assert len(before) <= MAX_SIDE_LENGTH
    assert len(after) <= MAX_SIDE_LENGTH
