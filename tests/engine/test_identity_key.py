from toolbench.engine.identity_key import IdentityKey


def test_identity_keys_are_equal_only_for_the_same_object() -> None:
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    assert IdentityKey(first) == IdentityKey(first)
    assert hash(IdentityKey(first)) == hash(IdentityKey(first))
    assert IdentityKey(first) != IdentityKey(second)
    assert IdentityKey(first) != first
