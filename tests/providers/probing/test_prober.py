"""Limit of the requests of a probe."""

import pytest

from tests.providers.probing.probe_runs import probe_personas
from toolbench.providers.probing import probes
from toolbench.providers.probing.probes import TITLES, probe_conformance


def test_probe_conformance_sends_no_request_beyond_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MAX_REQUESTS", 10)
    found = probe_personas(("perfect",), probe_conformance)["perfect"]
    assert len(found.exchanges) == 10
    assert found.checks.keys() == TITLES.keys()
    assert found.checks["tools"].outcome == "passed"
    assert found.checks["seed"].sentence == "Inconclusive: the probe has sent its 10 requests."
