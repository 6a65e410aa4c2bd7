"""A run to take away: the whole report, or its trials as a table."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from toolbench.lab.bundles.choosing import BundleRefused, UnknownRun
from toolbench.lab.bundles.writing import bundle_pieces
from toolbench.lab.reports.report import ReportRefused, zip_report
from toolbench.lab.reports.trials_export import export_trials
from toolbench.web.exports import WRITERS


@require_safe
def whole(request: HttpRequest, run_id: int) -> StreamingHttpResponse:
    """GET /runs/ID/report.zip: what `manage.py report` writes."""
    try:
        pieces = zip_report(run_id)
    except ReportRefused as refused:
        raise Http404(str(refused)) from None
    response = StreamingHttpResponse(pieces, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="toolbench-run-{run_id}.zip"'
    return response


@require_safe
def bundle(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """GET /runs/ID/bundle.zip: what `manage.py bundle` writes; with private cases where ?private=1 says so."""
    try:
        pieces = bundle_pieces(run_id, private=request.GET.get("private") == "1")
        response = StreamingHttpResponse(pieces, content_type="application/zip")
    except UnknownRun as unknown:
        raise Http404(str(unknown)) from None
    except BundleRefused as refused:
        messages.error(request, str(refused))
        return redirect("run", run_id)
    response["Content-Disposition"] = f'attachment; filename="toolbench-bundle-{run_id}.zip"'
    return response


@require_safe
def trials(request: HttpRequest, run_id: int, kind: str) -> HttpResponse:
    """GET /runs/ID/trials.csv and .json: a row per trial, without bodies."""
    write, content_type = WRITERS[kind]
    try:
        response = HttpResponse(write(export_trials(run_id)), content_type=content_type)
    except ReportRefused as refused:
        raise Http404(str(refused)) from None
    response["Content-Disposition"] = f'attachment; filename="toolbench-run-{run_id}-trials.{kind}"'
    return response
