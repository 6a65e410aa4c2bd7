"""A page, whole or in part: the same address and the same template answer both."""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers


def page(
    request: HttpRequest, template: str, context: Mapping[str, object], *, part: str = "", status: int = 200
) -> HttpResponse:
    """Renders `template`; only its named `part` when htmx asks for it."""
    partial = bool(part) and "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers
    response = render(request, f"{template}#{part}" if partial else template, dict(context), status=status)
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, private=True, no_cache=True)
    return response
