"""The first page: from nothing to a connected provider, a live run and a trace."""

from django.http import HttpRequest, HttpResponse

from toolbench.lab.first_page import get_first_page
from toolbench.web.pages import page


def show(request: HttpRequest) -> HttpResponse:
    """GET /; htmx asks for the local run alone while it goes on."""
    return page(request, "first/show.html", {"page": get_first_page()}, part="local")
