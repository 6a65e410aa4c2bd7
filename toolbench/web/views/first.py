"""The first page: from nothing to a connected provider, a live run and a trace."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.first_page import get_first_page
from toolbench.lab.runs.local_run import get_local_box
from toolbench.web.pages import page, wants_part


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /; htmx asks for the local run alone while it goes on. ?look=again looks for local servers anew."""
    context: dict[str, object] = {"local": get_local_box()}
    if not wants_part(request):
        context["page"] = get_first_page(look_again="look" in request.GET)
    return page(request, "first/show.html", context, part="local")
