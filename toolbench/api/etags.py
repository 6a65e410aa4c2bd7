"""ETags of answers: a client that polls gets no body until the answer changes."""

import hashlib

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_cache_control


def add_etag(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return a response to GET or HEAD with an ETag, or 304 if If-None-Match of the request names the same ETag.

    If If-Match names only other ETags, the response is 412. Responses to other methods, streaming ones, and those with
    another status than 200 are returned unchanged.
    """
    if not isinstance(response, HttpResponse) or response.status_code != 200 or request.method not in ("GET", "HEAD"):
        return response
    patch_cache_control(response, private=True, no_cache=True)
    response.headers["ETag"] = f'"{hashlib.sha256(response.content).hexdigest()[:32]}"'
    conditional_response = get_conditional_response(request, etag=response.headers["ETag"], response=response)
    return response if conditional_response is None else conditional_response
