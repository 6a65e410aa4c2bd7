"""ETags of answers, so that polling an address that did not change costs no body."""

import hashlib

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_cache_control


def add_etag(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return the answer to a read with its ETag, or 304 if the request names the same."""
    if not isinstance(response, HttpResponse) or response.status_code != 200 or request.method not in ("GET", "HEAD"):
        return response
    patch_cache_control(response, private=True, no_cache=True)
    response.headers["ETag"] = f'"{hashlib.sha256(response.content).hexdigest()[:32]}"'
    found = get_conditional_response(request, etag=response.headers["ETag"], response=response)
    return response if found is None else found
