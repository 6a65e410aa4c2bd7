"""Middleware that gives responses with status 405 a page, which Django leaves empty."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string

GetResponse = Callable[[HttpRequest], HttpResponse]


def explain_not_allowed(get_response: GetResponse) -> GetResponse:
    """Return middleware that adds an explanation to responses with status 405."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if isinstance(response, HttpResponseNotAllowed):
            response.content = render_to_string("405.html")
        return response

    return respond
