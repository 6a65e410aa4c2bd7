"""A run to take away: the whole report, or its trials as a table."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from toolbench.lab.interchange.bundle.selection import BundleRefused, UnknownRun
from toolbench.lab.interchange.bundle.write import bundle_pieces
from toolbench.lab.interchange.report.trials_table import export_trials
from toolbench.lab.interchange.report.write import ReportRefused, zip_report
from toolbench.web.downloads import streamed_file, table_file


@require_safe
def whole(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """GET /runs/ID/report.zip: what `manage.py report` writes."""
    try:
        return streamed_file(zip_report(run_id), "application/zip", name=f"toolbench-run-{run_id}.zip")
    except ReportRefused as refused:
        raise Http404(str(refused)) from None


@require_safe
def bundle(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """GET /runs/ID/bundle.zip: what `manage.py bundle` writes; with private cases where ?private=1 says so."""
    try:
        pieces = bundle_pieces(run_id, private=request.GET.get("private") == "1")
    except UnknownRun as unknown:
        raise Http404(str(unknown)) from None
    except BundleRefused as refused:
        messages.error(request, str(refused))
        return redirect("run", run_id)
    return streamed_file(pieces, "application/zip", name=f"toolbench-bundle-{run_id}.zip")


@require_safe
def trials(request: HttpRequest, run_id: int, kind: str) -> HttpResponse:
    """GET /runs/ID/trials.csv and .json: a row per trial, without bodies."""
    try:
        return table_file(export_trials(run_id), kind, name=f"toolbench-run-{run_id}-trials")
    except ReportRefused as refused:
        raise Http404(str(refused)) from None
