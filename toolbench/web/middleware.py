"""Middleware: an id for each request, and a page for status 405, which Django leaves empty."""

import logging
import re
import secrets
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string

from toolbench.log_lines import log_ids

GetResponse = Callable[[HttpRequest], HttpResponse]
REQUEST_ID_HEADER = "X-Request-ID"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
logger = logging.getLogger(__name__)


def identify_request(get_response: GetResponse) -> GetResponse:
    """Return middleware that gives each request an id, for its response and for log lines.

    An id in the request's header X-Request-ID, as a proxy sends it, is used if it matches _REQUEST_ID. At level INFO
    one line is logged for each request, with the name of the page and not its address, which may hold the token of a
    link.
    """

    def respond(request: HttpRequest) -> HttpResponse:
        sent_id = request.headers.get(REQUEST_ID_HEADER, "")
        request_id = sent_id if _REQUEST_ID.fullmatch(sent_id) else secrets.token_hex(8)
        started_at = time.perf_counter()
        with log_ids(request=request_id):
            response = get_response(request)
            page = request.resolver_match.view_name if request.resolver_match else "no page"
            milliseconds = (time.perf_counter() - started_at) * 1000
            logger.info("%s %s: %s in %.0f ms", request.method, page, response.status_code, milliseconds)
        response.headers[REQUEST_ID_HEADER] = request_id
        return response

    return respond


def explain_not_allowed(get_response: GetResponse) -> GetResponse:
    """Return middleware that adds an explanation to responses with status 405."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if isinstance(response, HttpResponseNotAllowed):
            response.content = render_to_string("405.html")
        return response

    return respond
