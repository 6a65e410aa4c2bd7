"""A page, whole or in part: the same address and the same template answer both."""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers


def wants_part(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page; when it goes back in history it wants the whole."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


def page(
    request: HttpRequest, template: str, context: Mapping[str, object], *, part: str = "", status: int = 200
) -> HttpResponse:
    """Renders `template`; only its named `part` when htmx asks for it."""
    name = f"{template}#{part}" if part and wants_part(request) else template
    response = render(request, name, dict(context), status=status)
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, private=True, no_cache=True)
    return response
