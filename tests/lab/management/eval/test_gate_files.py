"""Files of `manage.py eval` for CI."""

from xml.etree import ElementTree

from toolbench.lab.management.eval.baseline import BaselineGate, ComparedCell
from toolbench.lab.management.eval.gate_files import GateResults, render_junit, render_markdown
from toolbench.lab.management.eval.results import CellResult

GOOD = CellResult("m · happy_path", 9, 10, "9/10 (90 %, 60 to 98)", is_applicable=True)
BAD = CellResult("m|n · <b> \x00 · patch", 4, 10, "4/10 (40 %, 17 to 69)", is_applicable=True)
UNANSWERED = CellResult("m · silent", 0, 0, "no answer", is_applicable=True)
NOT_APPLICABLE = CellResult("m · off", 0, 0, "no answer", is_applicable=False)
WORSE = ComparedCell("patch", (10, 10), (2, 10), -0.8, -0.97, -0.4, 0.001, differs=True)
BETTER = ComparedCell("happy_path", (2, 10), (10, 10), 0.8, 0.4, 0.97, 0.001, differs=True)
UNTESTED = ComparedCell("chat", (1, 1), (1, 1), None, None, None, None, differs=False)


def test_gate_results_threshold_fails_low_and_unanswered_cells() -> None:
    results = GateResults("Run 7", (GOOD, BAD, UNANSWERED, NOT_APPLICABLE), fail_under=50)

    root = ElementTree.fromstring(render_junit(results))

    assert results.cells_below == (BAD, UNANSWERED)
    assert [len(root.findall(f".//{name}")) for name in ("testcase", "failure", "skipped", "error")] == [4, 2, 1, 0]
    assert root[0].attrib == {"name": "Run 7", "tests": "4", "failures": "2", "errors": "0"}


def test_gate_results_without_a_gate_have_no_failure() -> None:
    results = GateResults("Run 7", (GOOD, BAD))

    assert results.failure == ""
    assert "<failure" not in render_junit(results)
    assert "No gate was set." in render_markdown(results)


def test_gate_results_baseline_fails_only_significantly_worse_cells() -> None:
    results = GateResults("Run 7", (GOOD,), gate=BaselineGate(3, (WORSE, BETTER, UNTESTED), ("Stratified.",)))

    root, text = ElementTree.fromstring(render_junit(results)), render_markdown(results)

    assert results.failure.splitlines() == [
        "Worse than run 3 beyond chance:",
        "  patch: 10/10 → 2/10, -80 points (-97 to -40), p = 0.001",
    ]
    assert [case.get("name") for case in root[1] if case.find("failure") is not None] == ["patch"]
    assert "| patch | 10/10 → 2/10, -80 points (-97 to -40), p = 0.001 | worse |" in text
    assert "| happy_path | 2/10 → 10/10, +80 points (+40 to +97), p = 0.001 | better |" in text
    assert "| chat | 1/1 → 1/1, not tested |  |" in text
    assert "- Stratified." in text


def test_gate_results_of_an_unfinished_run_are_an_error() -> None:
    results = GateResults("Run 7", (GOOD,), unfinished="Run 7 is paused.")

    assert 'errors="1"' in render_junit(results)
    assert "Run 7 is paused." in render_markdown(results)


def test_gate_files_escape_names_of_cells() -> None:
    results = GateResults("Run 7", (BAD,))

    names = [case.get("name") for case in ElementTree.fromstring(render_junit(results)).iter("testcase")]

    assert names == ["m|n · <b> \N{REPLACEMENT CHARACTER} · patch"]
    assert r"| m\|n · &lt;b>" in render_markdown(results)


def test_gate_files_keep_a_backslash_before_a_bar_in_one_cell() -> None:
    results = GateResults("Run 7", (CellResult("a\\|b\nc", 1, 1, "1/1", is_applicable=True),))

    assert "| a\\\\\\|b c | 1/1 |  |" in render_markdown(results)
