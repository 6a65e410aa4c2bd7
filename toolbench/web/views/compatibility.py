"""What works where: by model and check, and by family of dialects."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.endpoints.compatibility_page import get_compatibility, get_families
from toolbench.web.rendering import page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /compatibility/"""
    return page(request, "compatibility/show.html", {"tables": get_compatibility()})


@require_safe
def families(request: HttpRequest) -> HttpResponse:
    """GET /families/"""
    return page(request, "compatibility/families.html", {"rows": get_families()})
