"""Export of trials as lines of OTLP JSON, one trial a line, as the file exporter of OpenTelemetry writes them."""

from collections.abc import Iterator

from django.db.models import Prefetch

from toolbench.engine.types import JsonObject
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.interchange.bundle.selection import select_for_bundle
from toolbench.lab.interchange.file_json import render_masked_json
from toolbench.lab.interchange.otlp.attributes import build_attributes
from toolbench.lab.interchange.otlp.spans import CONVENTIONS_VERSION, build_spans
from toolbench.lab.models import Step, Trial
from toolbench.lab.traces.body_batches import load_bodies
from toolbench.providers.masking.secrets import Masker


class TrialNotFoundError(Exception):
    """Trial that does not exist, belongs to a deleted run, or has not ended; the message gives the reason."""


def iter_run_lines(run_id: int, *, private: bool = False) -> Iterator[bytes]:
    """Return an iterator over the lines of a run's finished trials.

    Args:
        run_id: the run.
        private: whether trials of private scenarios are included.

    Raises:
        BundleError: there is no such run, or no scenario would be left. It is raised by this call, not by the iterator.
    """
    selection = select_for_bundle(run_id, private=private)
    masker = load_known_secrets().masker
    return (_render_line(trial, masker) for trial in selection.iter_trials())


def render_trial_line(trial_id: int) -> bytes:
    """Return the line of one finished trial.

    Raises:
        TrialNotFoundError: there is no such trial, its run was deleted, or it has not ended.
    """
    steps = Prefetch("steps", Step.objects.order_by("execution", "ordinal"))
    trials = Trial.objects.filter(pk=trial_id, run__deleted_at=None).select_related("config", "run")
    trial = next(load_bodies(trials.prefetch_related(steps)), None)
    if trial is None:
        raise TrialNotFoundError(f"There is no trial {trial_id}.")
    if trial.state != Trial.State.DONE:
        raise TrialNotFoundError(f"Trial {trial_id} has not ended yet.")
    return _render_line(trial, load_known_secrets().masker)


def _render_line(trial: Trial, masker: Masker) -> bytes:
    resource = {"service.name": "toolbench", "service.version": trial.engine_version or None}
    scope = {"name": "toolbench.trials", "version": CONVENTIONS_VERSION}
    spans: JsonObject = {"scope": scope, "spans": build_spans(trial)}
    document = {"resourceSpans": [{"resource": {"attributes": build_attributes(resource)}, "scopeSpans": [spans]}]}
    return render_masked_json(document, masker) + b"\n"
