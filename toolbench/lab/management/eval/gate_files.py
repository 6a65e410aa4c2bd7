"""Results of `manage.py eval` for CI: a JUnit file and a Markdown summary."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from toolbench.lab.interchange.report.matrix import escape_cell
from toolbench.lab.management.eval.baseline import BaselineGate
from toolbench.lab.management.eval.results import CellResult
from toolbench.lab.management.eval.threshold import list_cells_below

_INVALID_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class GateResults:
    """Cells of a run and the gates that they have to pass.

    Attributes:
        title: name of the run.
        fail_under: minimum answered success in percent; None without this gate.
        gate: comparison with a baseline; None without this gate.
        unfinished: sentences that say why the run is not finished; "" if it is.
    """

    title: str
    cells: tuple[CellResult, ...]
    fail_under: float | None = None
    gate: BaselineGate | None = None
    unfinished: str = ""

    @property
    def cells_below(self) -> tuple[CellResult, ...]:
        """The cells below `fail_under`."""
        return () if self.fail_under is None else list_cells_below(self.cells, self.fail_under)

    @property
    def failure(self) -> str:
        """Lines about each failed gate and the cells that fail it; "" if every gate is passed."""
        lines = [f"{cell.name}: {cell.text}" for cell in self.cells_below]
        below = "\n  ".join([f"Below {self.fail_under:g} %:", *lines]) if lines else ""
        return "\n".join(part for part in (below, self.gate.failure if self.gate else "") if part)


def render_junit(results: GateResults) -> str:
    """Render the cells as a suite of tests and the comparison with the baseline as another.

    The test of a cell fails if the cell fails the gate of its suite. An unfinished run and a comparison
    without cells are errors.
    """
    root = ElementTree.Element("testsuites", name="toolbench")
    below = results.cells_below
    suite = _add_suite(root, results.title, len(results.cells), len(below), bool(results.unfinished))
    for cell in results.cells:
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(results.title), name=_clean(cell.name))
        if not cell.is_applicable:
            ElementTree.SubElement(case, "skipped", message="not applicable")
        elif cell in below:
            ElementTree.SubElement(case, "failure", message=f"below {results.fail_under:g} %: {cell.text}")
        ElementTree.SubElement(case, "system-out").text = cell.text
    if results.unfinished:
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(results.title), name="the run is finished")
        ElementTree.SubElement(case, "error", message=_clean(results.unfinished))
    if results.gate is not None:
        _add_baseline(root, results.gate)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_baseline(root: ElementTree.Element, gate: BaselineGate) -> None:
    name = f"against run {gate.baseline_id}"
    suite = _add_suite(root, name, len(gate.cells), len(gate.worse_cells), not gate.cells)
    for cell in gate.cells:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=_clean(cell.name))
        if cell.is_worse:
            ElementTree.SubElement(case, "failure", message=f"worse beyond chance: {cell.text}")
        ElementTree.SubElement(case, "system-out").text = cell.text
    if not gate.cells:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name="the runs can be compared")
        ElementTree.SubElement(case, "error", message=_clean(gate.failure))


def _add_suite(
    root: ElementTree.Element, name: str, test_count: int, failure_count: int, has_error: bool
) -> ElementTree.Element:
    counts = {"tests": str(test_count + has_error), "failures": str(failure_count), "errors": str(int(has_error))}
    return ElementTree.SubElement(root, "testsuite", {"name": _clean(name), **counts})


def _clean(text: str) -> str:
    """Replace characters that XML does not allow."""
    return _INVALID_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def render_markdown(results: GateResults) -> str:
    """Render the cells, the gates and the comparison with the baseline as a summary in Markdown."""
    state = results.unfinished or results.failure.replace("\n  ", "\n- ") or "All gates are passed."
    if results.fail_under is None and results.gate is None and not results.unfinished:
        state = "No gate was set."
    below = results.cells_below
    rows = [(cell.name, cell.text, "below" if cell in below else "") for cell in results.cells]
    parts = [f"# {_escape(results.title)}", _escape(state), _render_table(("cell", "answered success", ""), rows)]
    if results.gate is not None and results.gate.cells:
        compared = [
            (cell.name, cell.text, "worse" if cell.is_worse else "better" if cell.differs else "")
            for cell in results.gate.cells
        ]
        head = ("scenario", f"run {results.gate.baseline_id} → this run", "")
        parts += [_render_table(head, compared), *(f"- {_escape(note)}" for note in results.gate.notes)]
    return "\n\n".join(parts) + "\n"


def _render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(escape_cell, line))} |" for line in lines)


def _escape(text: str) -> str:
    """Escape the start of HTML tags, which Markdown would pass through."""
    return text.replace("<", "&lt;")
