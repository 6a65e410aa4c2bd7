"""Pages inside a bundle. They open from a folder, without a server, a network or a script."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string

from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.lab.interchange.bundle.selection import BundleSelection
from toolbench.lab.interchange.bundle.statistics import INTERVAL_NOTE, ConfigStatistics
from toolbench.lab.interchange.file_json import decode_text
from toolbench.lab.interchange.manifest import Manifest, build_trace_name
from toolbench.lab.models import Run, Step, Trial

STYLE_NAME = "style.css"
STYLE_SHEETS = ("tokens.css", "base.css", "components.css", "interchange.css")
MAX_TRIALS_LISTED = 5000  # on the index page
MAX_BODY_BYTES_SHOWN = 20_000  # of a body on a trace page; the evidence has the whole body


@dataclass(frozen=True, slots=True)
class BundledTrialRow:
    """A trial in the list of the index page.

    Attributes:
        trace: name of the trial's page.
        number: number of the trial in the bundle, from 1.
        mark: its outcome.
        sentence: its outcome in words.
    """

    trace: str
    number: int
    scenario: str
    configuration: str
    mark: str
    sentence: str


@dataclass(frozen=True, slots=True)
class BodyView:
    """A body as a trace page shows it.

    Attributes:
        size: bytes of the whole body.
        cut: whether the text is truncated.
    """

    title: str
    text: str
    size: int
    cut: bool


@dataclass(frozen=True, slots=True)
class BundledStep:
    """A step as a trace page shows it; `abandoned` marks a step of an earlier execution of its trial."""

    step: Step
    abandoned: bool
    bodies: tuple[BodyView, ...]


@cache
def load_style() -> str:
    """Return all style sheets that the pages need as one."""
    folder = Path(settings.BASE_DIR) / "static" / "css"
    return "\n".join((folder / name).read_text() for name in STYLE_SHEETS)


def build_trial_row(trial: Trial, number: int) -> BundledTrialRow:
    """Return the row of a trial for the index page."""
    named = f"{trial.config} · {trial.index}"
    return BundledTrialRow(build_trace_name(number), number, trial.scenario, named, trial.outcome, trial.sentence)


def render_index(
    chosen: BundleSelection, lines: Sequence[ConfigStatistics], trials: Sequence[BundledTrialRow], manifest: Manifest
) -> bytes:
    """Return the index page. Failed trials come first, then infrastructure errors."""
    order = ("fail", "infra", "pass")
    ranked = sorted(trials, key=lambda line: order.index(line.mark) if line.mark in order else len(order))
    context = {
        "run": chosen.run,
        "lines": lines,
        "trials": ranked[:MAX_TRIALS_LISTED],
        "unlisted": max(len(ranked) - MAX_TRIALS_LISTED, 0),
        "manifest": manifest,
        "meaning": INTERVAL_NOTE,
        "until": str(StoppingRule.read(chosen.run.until)) if chosen.run.until else "",
        "style": load_style(),
    }
    return _encode_page(render_to_string("interchange/index.html", context))


def render_trace(run: Run, trial: Trial, steps: Sequence[Step], number: int) -> bytes:
    """Return the page of a trial, which has this number in the bundle."""
    context = {
        "run": run,
        "trial": trial,
        "number": number,
        "steps": [_build_step(step, trial) for step in steps],
        "checks": trial.verdict.get("checks", ()),
        "rule": trial.verdict.get("rule", ""),
        "final": decode_text(trial.final_text)[:MAX_BODY_BYTES_SHOWN],
        "style_sheet": f"../{STYLE_NAME}",
    }
    return _encode_page(render_to_string("interchange/trace.html", context))


def _build_step(step: Step, trial: Trial) -> BundledStep:
    tool = step.kind == Step.Kind.TOOL
    titles = ("Arguments as written", "Given back to the model") if tool else ("Request", "Response")
    bodies = (step.body.request, step.body.response) if hasattr(step, "body") else (b"", b"")
    views = tuple(_build_body_view(title, bytes(raw)) for title, raw in zip(titles, bodies, strict=True))
    return BundledStep(step, step.execution != trial.execution, views)


def _build_body_view(title: str, raw: bytes) -> BodyView:
    text = decode_text(raw[:MAX_BODY_BYTES_SHOWN]).replace("\0", "␀")
    return BodyView(title, text, len(raw), len(raw) > MAX_BODY_BYTES_SHOWN)


def _encode_page(page: str) -> bytes:
    return page.encode("utf-8", "backslashreplace")
