"""Workers on separate hosts: cut off, slow, with wrong clocks; and the commands of the compose file."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos.small_disk import find_unshare
from benchmarks.hosts.scenarios import SCENARIOS
from benchmarks.hosts.stack import has_libfaketime
from toolbench.installation import ROOT
from toolbench.running.database_user import build_confined_command

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not find_unshare("--net"), reason="no network namespace: unshare --net --mount is refused"),
]

PATIENCE_SECONDS = 1_800
no_libfaketime = pytest.mark.skipif(not has_libfaketime(), reason="no libfaketime (Debian: package faketime)")

Records = dict[str, dict[str, Any]]


def run_module(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = build_confined_command([sys.executable, "-m", module, *arguments], death_signal=signal.SIGTERM)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """Run all scenarios in order and return their records by name."""
    out: Path = tmp_path_factory.mktemp("hosts") / "scenarios.jsonl"
    process = run_module("benchmarks.hosts", "--out", str(out))
    lines = out.read_text().splitlines() if out.exists() else []
    assert lines, f"the benchmark ended before the first scenario:\n{process.stdout}\n{process.stderr}"
    return {record["scenario"]: record for record in map(json.loads, lines)}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=no_libfaketime if name == "wrong_clocks" else ()) for name in SCENARIOS]
)
def test_hosts_scenario_breaks_no_invariant(records: Records, name: str) -> None:
    assert records[name]["wrong"] == [], records[name]


def test_hosts_scenarios_with_a_cut_lose_executions(records: Records) -> None:
    """A cut without lost executions would be too short to test their recovery."""
    assert records["cut_long"]["executions_lost"] > 0
    assert records["cut_dead"]["executions_lost"] > 0


def test_compose_commands_start_page_gateway_and_both_hosts() -> None:
    process = run_module("benchmarks.hosts.compose")
    assert process.returncode == 0, f"{process.stdout}\n{process.stderr}"
    record = json.loads(process.stdout.splitlines()[-1])
    assert (record["page"], record["gateway"]) == (200, 200)
    assert record["hosts that took trials"] == ["host-1", "host-2"]
