"""Ids of calls that are used once in a conversation and match the pattern of the wire format."""

import re

import pytest

from toolbench.engine.wire_formats.anthropic.call_ids import CallIdAssigner


@pytest.mark.parametrize("length", [62, 63, 64])
def test_assign_ids_keeps_the_length_limit_of_repeated_ids(length: int) -> None:
    allowed_pattern = re.compile(r"[a-z0-9_]{1,64}")
    assigner = CallIdAssigner(allowed_pattern, "call_")
    ids = [assigner.assign_ids(["c" * length])[0] for _ in range(3)]
    assert ids[0] == "c" * length
    assert len(set(ids)) == 3
    assert all(map(allowed_pattern.fullmatch, ids))


def test_assign_ids_numbers_repeated_ids() -> None:
    assert CallIdAssigner().assign_ids(["c", "c", "c_2", "c"]) == ["c", "c_2", "c_2_2", "c_3"]
