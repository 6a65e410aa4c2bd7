"""Views of the downloads of a run: its report, its bundle, and its trials as a table."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from toolbench.lab.interchange.bundle.selection import BundleError, UnknownRunError
from toolbench.lab.interchange.bundle.write import iter_bundle_chunks
from toolbench.lab.interchange.report.trials_table import export_trials
from toolbench.lab.interchange.report.write import ReportError, iter_report_zip
from toolbench.web.downloads import build_streamed_response, build_table_response


@require_safe
def download_report(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """Return the report that `manage.py report` writes (GET /runs/ID/report.zip)."""
    try:
        return build_streamed_response(iter_report_zip(run_id), "application/zip", name=f"toolbench-run-{run_id}.zip")
    except ReportError as error:
        raise Http404(str(error)) from None


@require_safe
def download_bundle(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Return the bundle that `manage.py bundle` writes (GET /runs/ID/bundle.zip); ?private=1 adds private cases."""
    try:
        chunks = iter_bundle_chunks(run_id, private=request.GET.get("private") == "1")
    except UnknownRunError as error:
        raise Http404(str(error)) from None
    except BundleError as error:
        messages.error(request, str(error))
        return redirect("run", run_id)
    return build_streamed_response(chunks, "application/zip", name=f"toolbench-bundle-{run_id}.zip")


@require_safe
def download_trials(request: HttpRequest, run_id: int, kind: str) -> HttpResponse:
    """Return one row for each trial, without bodies (GET /runs/ID/trials.csv or .json)."""
    try:
        return build_table_response(export_trials(run_id), kind, name=f"toolbench-run-{run_id}-trials")
    except ReportError as error:
        raise Http404(str(error)) from None
