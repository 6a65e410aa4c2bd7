"""Views of the downloads of a run: report, bundle, table of trials, Inspect logs and OTLP spans."""

from collections.abc import Callable, Iterator

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from toolbench.lab.interchange.bundle.selection import BundleError, UnknownRunError
from toolbench.lab.interchange.bundle.write import iter_bundle_chunks
from toolbench.lab.interchange.inspect_ai.write import iter_log_zip
from toolbench.lab.interchange.otlp.write import TrialNotFoundError, iter_run_lines, render_trial_line
from toolbench.lab.interchange.report.trials_table import export_trials
from toolbench.lab.interchange.report.write import ReportError, iter_report_zip
from toolbench.web.downloads import build_file_response, build_streamed_response, stream_table_response

JSON_LINES = "application/jsonl"


@require_safe
def download_report(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """Return the report that `manage.py report` writes (GET /runs/ID/report.zip)."""
    try:
        return build_streamed_response(iter_report_zip(run_id), "application/zip", name=f"toolbench-run-{run_id}.zip")
    except ReportError as error:
        raise Http404(str(error)) from None


@require_safe
def download_bundle(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Return the bundle that `manage.py bundle` writes (GET /runs/ID/bundle.zip).

    ?private=1 adds private cases.
    """
    return _stream_export(request, run_id, iter_bundle_chunks, ("application/zip", f"toolbench-bundle-{run_id}.zip"))


@require_safe
def download_inspect_logs(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Return a run as logs of Inspect AI (GET /runs/ID/inspect.zip); ?private=1 adds private cases."""
    return _stream_export(request, run_id, iter_log_zip, ("application/zip", f"toolbench-inspect-{run_id}.zip"))


@require_safe
def download_run_spans(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Return the trials of a run as OTLP spans (GET /runs/ID/otlp.jsonl); ?private=1 adds private cases."""
    return _stream_export(request, run_id, iter_run_lines, (JSON_LINES, f"toolbench-run-{run_id}.otlp.jsonl"))


@require_safe
def download_trial_spans(request: HttpRequest, trial_id: int) -> HttpResponse:
    """Return the OTLP spans of one trial (GET /trials/ID/otlp.jsonl)."""
    try:
        line = render_trial_line(trial_id)
    except TrialNotFoundError as error:
        raise Http404(str(error)) from None
    return build_file_response(line, JSON_LINES, name=f"toolbench-trial-{trial_id}.otlp.jsonl")


def _stream_export(
    request: HttpRequest, run_id: int, iter_chunks: Callable[..., Iterator[bytes]], file: tuple[str, str]
) -> HttpResponseBase:
    """Stream an export of a run, with private cases for ?private=1; `file` is content type and name."""
    try:
        chunks = iter_chunks(run_id, private=request.GET.get("private") == "1")
    except UnknownRunError as error:
        raise Http404(str(error)) from None
    except BundleError as error:
        messages.error(request, str(error))
        return redirect("run", run_id)
    return build_streamed_response(chunks, file[0], name=file[1])


@require_safe
def download_trials(request: HttpRequest, run_id: int, file_format: str) -> StreamingHttpResponse:
    """Return one row for each trial, without bodies (GET /runs/ID/trials.csv or .json)."""
    try:
        return stream_table_response(export_trials(run_id), file_format, name=f"toolbench-run-{run_id}-trials")
    except ReportError as error:
        raise Http404(str(error)) from None
