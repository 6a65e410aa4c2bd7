"""The probe against the real local model: the model's own template drops the tools, ours keeps them."""

from dataclasses import replace

import pytest

from tests.providers.probing.probe_runs import run_probe
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.ready_line import ReadyLine

pytestmark = pytest.mark.local_model


def endpoint(served: ReadyLine) -> Endpoint:
    limits = Timeouts(connect=10, read=120, deadline=120)
    return replace(Endpoint(served.url, served.model, key=served.key), timeouts=limits)


def test_a_template_without_a_place_for_tools_is_found_by_counting_tokens(own: ReadyLine) -> None:
    found = run_probe(endpoint(own))

    assert found.capabilities.tools_field == "dropped"
    assert found.capabilities.supports_tool_use is False


def test_a_template_with_tools_does_not_drop_them(tools: ReadyLine) -> None:
    assert run_probe(endpoint(tools)).capabilities.tools_field in ("accepted", None)
