"""The benchmark of pages on a large database, on a small one: every page answers."""

import re
import subprocess
import sys

import pytest

from toolbench.installation import ROOT

pytestmark = pytest.mark.long

PATIENCE_SECONDS = 900


def test_million_measures_every_page_of_a_small_database() -> None:
    command = [sys.executable, "-m", "benchmarks.million", "--trials", "2000", "--repeats", "1"]
    printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS)
    rows = re.findall(r"^\| `(\S+)` \| (\d+) \|", printed.stdout, re.MULTILINE)
    assert len(rows) > 100
    assert {address: status for address, status in rows if status != "200"} == {}
    assert re.search(r"^\| \d+ \| [\d.]+ \| [\d.]+ \| [\d.]+ \|$", printed.stdout, re.MULTILINE)  # search texts
