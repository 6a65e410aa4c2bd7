"""The pages inside a bundle: they open from a folder, without a server, a network or a script."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string

from toolbench.evals.statistics.stopping import Until
from toolbench.lab.interchange.bundle.selection import Chosen
from toolbench.lab.interchange.bundle.statistics import MEANING, ConfigLine
from toolbench.lab.interchange.file_json import read_text
from toolbench.lab.interchange.manifest import Manifest, trace_member
from toolbench.lab.models import Run, Step, Trial

STYLE = "style.css"
SHEETS = ("tokens.css", "base.css", "components.css", "bundles.css")
MOST_LINES = 5000  # trials that the index lists
SHOWN = 20_000  # bytes of a body that a trace page shows; the evidence holds them all


@dataclass(frozen=True, slots=True)
class TrialLine:
    """A trial as the index lists it."""

    trace: str
    number: int
    scenario: str
    configuration: str
    mark: str
    sentence: str


@dataclass(frozen=True, slots=True)
class BodyView:
    title: str
    text: str
    size: int
    cut: bool


@dataclass(frozen=True, slots=True)
class StepLine:
    step: Step
    abandoned: bool
    bodies: tuple[BodyView, ...]


@cache
def style() -> str:
    """Every rule that the pages need, in one piece."""
    folder = Path(settings.BASE_DIR) / "static" / "css"
    return "\n".join((folder / name).read_text() for name in SHEETS)


def trial_line(trial: Trial, number: int) -> TrialLine:
    named = f"{trial.config} · {trial.index}"
    return TrialLine(trace_member(number), number, trial.scenario, named, trial.outcome, trial.sentence)


def index_page(chosen: Chosen, lines: Sequence[ConfigLine], trials: Sequence[TrialLine], manifest: Manifest) -> bytes:
    """Failed trials first."""
    order = ("fail", "infra", "pass")
    ranked = sorted(trials, key=lambda line: order.index(line.mark) if line.mark in order else len(order))
    context = {
        "run": chosen.run,
        "lines": lines,
        "trials": ranked[:MOST_LINES],
        "unlisted": max(len(ranked) - MOST_LINES, 0),
        "manifest": manifest,
        "meaning": MEANING,
        "until": str(Until.read(chosen.run.until)) if chosen.run.until else "",
        "style": style(),
    }
    return _bytes(render_to_string("bundles/index.html", context))


def trace_page(run: Run, trial: Trial, steps: Sequence[Step], number: int) -> bytes:
    context = {
        "run": run,
        "trial": trial,
        "number": number,
        "steps": [_step(step, trial) for step in steps],
        "checks": trial.verdict.get("checks", ()),
        "rule": trial.verdict.get("rule", ""),
        "final": read_text(trial.final_text)[:SHOWN],
        "style_sheet": f"../{STYLE}",
    }
    return _bytes(render_to_string("bundles/trace.html", context))


def _step(step: Step, trial: Trial) -> StepLine:
    tool = step.kind == Step.Kind.TOOL
    titles = ("Arguments as written", "Given back to the model") if tool else ("Request", "Response")
    bodies = (step.body.request, step.body.response) if hasattr(step, "body") else (b"", b"")
    views = tuple(_body(title, bytes(raw)) for title, raw in zip(titles, bodies, strict=True))
    return StepLine(step, step.execution != trial.execution, views)


def _body(title: str, raw: bytes) -> BodyView:
    text = read_text(raw[:SHOWN]).replace("\0", "␀")
    return BodyView(title, text, len(raw), len(raw) > SHOWN)


def _bytes(page: str) -> bytes:
    return page.encode("utf-8", "backslashreplace")
