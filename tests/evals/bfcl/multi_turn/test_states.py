"""Tests of the first difference between two states."""

from toolbench.evals.bfcl.multi_turn.states import find_state_difference, parse_state

FILE = {"$": "File", "of": {"name": "a", "content": "x"}}


def test_find_state_difference_compares_values_as_python_does() -> None:
    first = parse_state(
        {"A": {"n": 1, "ids": {"$": "set", "of": [1, 2]}, "by": {"$": "dict", "of": [[1, "x"], [2, "y"]]}}}
    )
    same = parse_state(
        {"A": {"n": 1.0, "ids": {"$": "set", "of": [2, 1]}, "by": {"$": "dict", "of": [[2, "y"], [1, "x"]]}}}
    )
    assert find_state_difference(first, same) == ""
    other = parse_state({"A": {"n": 1, "ids": {"$": "set", "of": [1, 2]}, "by": {"1": "x", "2": "y"}}})
    assert find_state_difference(first, other) == "A.by.1 is missing"


def test_find_state_difference_names_innermost_path_and_values() -> None:
    expected = parse_state({"A": {"root": {"files": [FILE]}, "ids": {"$": "set", "of": [1]}}})
    changed = {**FILE, "of": {"name": "a", "content": "y"}}
    made = parse_state({"A": {"root": {"files": [changed]}, "ids": {"$": "set", "of": [1]}}})
    assert find_state_difference(expected, made) == 'A.root.files[0].content is "y" instead of "x"'
    more = parse_state({"A": {"root": {"files": [FILE], "b": FILE}, "ids": {"$": "set", "of": []}}})
    assert find_state_difference(expected, more) == "A.root.b is not expected"
    emptied = parse_state({"A": {"root": {"files": FILE}, "ids": {"$": "set", "of": [1]}}})
    assert find_state_difference(expected, emptied).startswith(
        'A.root.files is {"name": "a", "content": "x"} instead of ['
    )
