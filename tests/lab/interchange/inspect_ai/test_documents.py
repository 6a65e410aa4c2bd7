"""A log read sample by sample says what the whole document says."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolbench.lab.interchange.inspect_ai.documents import parse_log_document

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
LOGS = st.dictionaries(st.sampled_from(["eval", "samples", "a"]), VALUES, max_size=3)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LOGS, st.sampled_from([None, 1, "\t"]), st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]))
def test_read_log_document_agrees_with_the_whole(log: object, indent: int | str | None, encoding: str) -> None:
    raw = json.dumps(log, indent=indent).encode(encoding)
    found = parse_log_document(raw)
    whole = json.loads(raw)
    samples = whole.get("samples")
    listed = samples if isinstance(samples, list) else []
    assert repr(list(found.iter_samples())) == repr([item for item in listed if isinstance(item, dict)])
    assert found.count == len(listed)
    assert repr(found.header) == repr({key: whole[key] for key in whole if whole[key] is not listed})


BROKEN = ("", "[]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', "{} x", "{1:2}", '{"a" 1}', "[" * 100_000)
BROKEN_SAMPLES = ("[", "[1", "[1,]}", "[1 2]}", "[" * 100_000)


@pytest.mark.parametrize("raw", [*BROKEN, *(f'{{"samples":{samples}' for samples in BROKEN_SAMPLES)])
def test_read_log_document_refuses_broken_json(raw: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        parse_log_document(raw.encode())
