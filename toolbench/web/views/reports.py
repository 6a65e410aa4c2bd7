"""A run to take away: the whole report, or its trials as a table."""

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.report import ReportRefused, zip_report
from toolbench.lab.trials_export import export_trials
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
def trials(request: HttpRequest, run_id: int, kind: str) -> HttpResponse:
    """GET /runs/ID/trials.csv and .json: a row per trial, without bodies."""
    write, content_type = WRITERS[kind]
    try:
        response = HttpResponse(write(export_trials(run_id)), content_type=content_type)
    except ReportRefused as refused:
        raise Http404(str(refused)) from None
    response["Content-Disposition"] = f'attachment; filename="toolbench-run-{run_id}-trials.{kind}"'
    return response
