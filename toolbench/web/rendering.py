"""Rendering of pages, whole or in part, from the same URL and template."""

from collections.abc import Callable, Mapping
from functools import wraps
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import MAX_URL_REDIRECT_LENGTH

from toolbench.lab.interchange.file_json import encode_text


def is_part_request(request: HttpRequest) -> bool:
    """Return whether htmx requests a part of the page.

    To restore its history, htmx requests the whole page.
    """
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


def redirect_to_short_address(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Decorate the view of a long GET form, so that its URLs have no empty fields and no CSRF token.

    If a URL has empty fields or a CSRF token, the response redirects to the URL without them. POST requests, requests
    for parts of pages, and URLs that are too long for a redirect even without them, reach the view unchanged.
    """

    @wraps(view)
    def respond(request: HttpRequest) -> HttpResponse:
        parameters = [(name, value) for name, values in request.GET.lists() for value in values]
        filled = [(name, value) for name, value in parameters if value and name != "csrfmiddlewaretoken"]
        short_url = f"{request.path}?{urlencode(filled)}" if filled else request.path
        is_whole_page = request.method != "POST" and not is_part_request(request)
        if is_whole_page and len(filled) < len(parameters) and len(short_url) <= MAX_URL_REDIRECT_LENGTH:
            return redirect(short_url)
        return view(request)

    return respond


def render_page(
    request: HttpRequest, template: str, context: Mapping[str, object], *, part: str = "", status: int = 200
) -> HttpResponse:
    """Render `template`, or only its named `part` if htmx requests a part.

    Lone surrogates, which texts of models may have, become backslash escapes, since no page can contain them.

    The headers make a browser store the page and its part separately and revalidate them before each use. Shared
    caches store neither.
    """
    name = f"{template}#{part}" if part and is_part_request(request) else template
    html = render_to_string(name, dict(context), request)
    response = HttpResponse(encode_text(html), status=status)
    patch_vary_headers(response, ["HX-Request"])
    patch_cache_control(response, private=True, no_cache=True)
    return response
