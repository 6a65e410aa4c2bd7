from toolbench.engine.identity import Same


def test_keys_around_one_object_are_equal_and_around_equal_objects_are_not() -> None:
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    assert Same(first) == Same(first)
    assert hash(Same(first)) == hash(Same(first))
    assert Same(first) != Same(second)
    assert Same(first) != first
