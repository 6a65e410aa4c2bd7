"""Logs read sample by sample equal the whole document."""

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
def test_parse_log_document_agrees_with_json_loads(log: object, indent: int | str | None, encoding: str) -> None:
    raw = json.dumps(log, indent=indent).encode(encoding)
    found = parse_log_document(raw)
    document = json.loads(raw)
    samples = document.get("samples")
    expected_samples = samples if isinstance(samples, list) else []
    assert repr(list(found.iter_samples())) == repr([item for item in expected_samples if isinstance(item, dict)])
    assert found.count == len(expected_samples)
    assert repr(found.header) == repr({key: document[key] for key in document if document[key] is not expected_samples})


DEEP = '{"metadata":' * 300 + "1" + "}" * 300
BROKEN = ("", "[]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', "{} x", "{1:2}", DEEP, '{"a" 1}', "[" * 100_000)
BROKEN_SAMPLES = ("[", "[1", "[1,]}", "[1 2]}", "[" * 100_000)


@pytest.mark.parametrize("raw", [*BROKEN, *(f'{{"samples":{samples}' for samples in BROKEN_SAMPLES)])
def test_parse_log_document_refuses_broken_json(raw: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Extra data|Illegal trailing|nested deeper than 256"):
        parse_log_document(raw.encode())
