from toolbench.engine.identity_key import IdentityKey


def test_keys_around_one_object_are_equal_and_around_equal_objects_are_not() -> None:
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    assert IdentityKey(first) == IdentityKey(first)
    assert hash(IdentityKey(first)) == hash(IdentityKey(first))
    assert IdentityKey(first) != IdentityKey(second)
    assert IdentityKey(first) != first
