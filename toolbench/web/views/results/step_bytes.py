"""Views of the exact bytes of a step: as pages of text, as a download, and as a curl command."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.models import Step
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.trial.bodies.bytes_page import get_bytes, get_bytes_page
from toolbench.lab.results.trial.bodies.curl import get_curl
from toolbench.web.downloads import build_file_response
from toolbench.web.rendering import render_page

_STEP_NOT_FOUND = "There is no such step; its run may have been deleted."


@require_safe
def show(request: HttpRequest, step_id: int, side: str) -> HttpResponse:
    """Show a page of the bytes of one side (GET /steps/<id>/<request|response>/?page=)."""
    try:
        page = get_bytes_page(step_id, side, parse_whole_number(request.GET.get("page", "")) or 1)
    except Step.DoesNotExist:
        raise Http404(_STEP_NOT_FOUND) from None
    context = {"page": page, "previous_page": page.page - 1, "next_page": page.page + 1}
    return render_page(request, "step_bytes/show.html", context)


@require_safe
def download(request: HttpRequest, step_id: int, side: str) -> HttpResponse:
    """Return all bytes of one side as a file (GET /steps/<id>/<side>.bin).

    The bytes are sent as a file and not as a page, since a browser could run what a model wrote.
    """
    try:
        step, raw = get_bytes(step_id, side)
    except Step.DoesNotExist:
        raise Http404(_STEP_NOT_FOUND) from None
    name = f"trial-{step.trial_id}-execution-{step.execution}-step-{step.ordinal}-{side}.bin"
    return build_file_response(raw, "application/octet-stream", name=name)


@require_safe
def show_curl(request: HttpRequest, step_id: int) -> HttpResponse:
    """Return the request of a step as a curl command in plain text (GET /steps/<id>/curl/)."""
    try:
        command = get_curl(step_id)
    except Step.DoesNotExist:
        raise Http404(_STEP_NOT_FOUND) from None
    return HttpResponse(
        command, content_type="text/plain; charset=utf-8", headers={"Cache-Control": "private, no-cache"}
    )
