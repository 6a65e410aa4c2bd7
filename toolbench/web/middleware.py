"""What the framework would leave blank."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string

GetResponse = Callable[[HttpRequest], HttpResponse]


def explain_not_allowed(get_response: GetResponse) -> GetResponse:
    """An action opened as a page, or a page sent to, gets a page that says so."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if isinstance(response, HttpResponseNotAllowed):
            response.content = render_to_string("405.html")
        return response

    return respond
