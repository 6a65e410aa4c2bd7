"""Tests of the probe on the local model: its own template drops the tools, that of Toolbench keeps them."""

from dataclasses import replace

import pytest

from tests.providers.probing.probe_runs import run_probe
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.ready_line import ReadyLine

pytestmark = pytest.mark.local_model


def build_endpoint(server: ReadyLine) -> Endpoint:
    limits = Timeouts(connect=10, read=120, deadline=120)
    return replace(Endpoint(server.url, server.model, key=server.key), timeouts=limits)


def test_probe_finds_a_template_that_drops_tools_by_its_token_counts(own_server: ReadyLine) -> None:
    found = run_probe(build_endpoint(own_server))

    assert found.capabilities.tools_field == "dropped"
    assert found.capabilities.supports_tool_use is False


def test_probe_of_a_template_with_tools_finds_none_dropped(tools_server: ReadyLine) -> None:
    assert run_probe(build_endpoint(tools_server)).capabilities.tools_field in ("accepted", None)
