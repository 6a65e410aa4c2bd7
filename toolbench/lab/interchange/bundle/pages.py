"""HTML pages of a bundle, which open from a folder without a server, a network or a script."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from django.template.loader import render_to_string

from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.installation import ASSETS
from toolbench.lab.interchange.bundle.selection import BundleSelection
from toolbench.lab.interchange.bundle.statistics import INTERVAL_NOTE, ConfigStatistics
from toolbench.lab.interchange.file_json import decode_text, encode_text
from toolbench.lab.interchange.manifest import Manifest, build_trace_name
from toolbench.lab.models import Run, Step, Trial

STYLE_NAME = "style.css"
STYLE_SHEETS = ("tokens.css", "base.css", "components.css", "interchange.css")
MAX_TRIALS_LISTED = 5000  # on the index page
MAX_BODY_BYTES_SHOWN = 20_000  # on the page of a trial; the evidence has the whole body


@dataclass(frozen=True, slots=True)
class BundledTrialRow:
    """Row of a trial on the index page.

    Attributes:
        trace: name of the member of the bundle that has the trial's page.
        number: number of the trial in the bundle, from 1.
        scenario: slug of the scenario.
        configuration: name of the configuration and number of the repeat.
        mark: outcome code of the trial, such as "pass".
        sentence: first problem of the trial in words; empty if there is none.
    """

    trace: str
    number: int
    scenario: str
    configuration: str
    mark: str
    sentence: str


@dataclass(frozen=True, slots=True)
class BodyView:
    """Body of a step, or last answer, on the page of a trial.

    Attributes:
        title: heading of the body.
        text: the first MAX_BODY_BYTES_SHOWN bytes as text, with NUL shown as ␀.
        size: number of bytes of the complete body.
        is_truncated: whether the text lacks the end of the body.
    """

    title: str
    text: str
    size: int
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class BundledStep:
    """Step on the page of a trial.

    Attributes:
        step: the stored step.
        is_earlier: whether the step belongs to an earlier execution of its trial.
        bodies: request and response, or arguments and result of a tool call.
    """

    step: Step
    is_earlier: bool
    bodies: tuple[BodyView, ...]


@cache
def load_style() -> str:
    """Return the style sheets of the pages, joined into one. The result is cached for the process."""
    folder = ASSETS / "static" / "css"
    return "\n".join((folder / name).read_text() for name in STYLE_SHEETS)


def build_trial_row(trial: Trial, number: int) -> BundledTrialRow:
    """Return the row of the trial that has this number in the bundle, for the index page."""
    configuration = f"{trial.config} · {trial.index}"
    return BundledTrialRow(
        build_trace_name(number), number, trial.scenario, configuration, trial.outcome, trial.sentence
    )


def render_index(
    selection: BundleSelection,
    config_statistics: Sequence[ConfigStatistics],
    trials: Sequence[BundledTrialRow],
    manifest: Manifest,
) -> bytes:
    """Return the index page with at most MAX_TRIALS_LISTED trials.

    Failed trials come first, then infrastructure errors, passed trials and all others.
    """
    outcome_order = ("fail", "infra", "pass")
    ordered_trials = sorted(
        trials, key=lambda row: outcome_order.index(row.mark) if row.mark in outcome_order else len(outcome_order)
    )
    context = {
        "run": selection.run,
        "rows": config_statistics,
        "trials": ordered_trials[:MAX_TRIALS_LISTED],
        "unlisted": max(len(ordered_trials) - MAX_TRIALS_LISTED, 0),
        "manifest": manifest,
        "meaning": INTERVAL_NOTE,
        "until": str(StoppingRule.from_json(selection.run.until)) if selection.run.until else "",
        "style": load_style(),
    }
    return encode_text(render_to_string("interchange/index.html", context))


def render_trace(run: Run, trial: Trial, steps: Sequence[Step], number: int) -> bytes:
    """Return the page of the trial that has this number in the bundle."""
    context = {
        "run": run,
        "trial": trial,
        "number": number,
        "steps": [_build_step(step, trial) for step in steps],
        "checks": trial.verdict.get("checks", ()),
        "rule": trial.verdict.get("rule", ""),
        "final": _build_body_view("Last answer", bytes(trial.final_text)),
        "style_sheet": f"../{STYLE_NAME}",
    }
    return encode_text(render_to_string("interchange/trace.html", context))


def _build_step(step: Step, trial: Trial) -> BundledStep:
    is_tool = step.kind == Step.Kind.TOOL
    titles = ("Arguments as the model wrote them", "Result for the model") if is_tool else ("Request", "Response")
    bodies = (step.body.request, step.body.response) if hasattr(step, "body") else (b"", b"")
    views = tuple(_build_body_view(title, bytes(raw)) for title, raw in zip(titles, bodies, strict=True))
    return BundledStep(step, step.execution != trial.execution, views)


def _build_body_view(title: str, body: bytes) -> BodyView:
    text = decode_text(body[:MAX_BODY_BYTES_SHOWN]).replace("\0", "␀")
    return BodyView(title, text, len(body), len(body) > MAX_BODY_BYTES_SHOWN)
