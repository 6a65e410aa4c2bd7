"""Sampling profiles, readable."""

from django.http import HttpRequest, HttpResponse

from toolbench.lab.connections.setup_pages import get_profiles
from toolbench.web.pages import page


def show(request: HttpRequest) -> HttpResponse:
    """GET /profiles/"""
    return page(request, "profiles/show.html", {"profiles": get_profiles()})
