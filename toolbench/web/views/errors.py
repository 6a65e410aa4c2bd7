"""What is said when a page cannot be built: the database away is expected trouble, the rest is our mistake."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string


def server_error(request: HttpRequest) -> HttpResponse:
    """503 when the database does not answer, else 500. Needs neither session nor database."""
    away = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    status = 503 if away else 500
    return HttpResponse(render_to_string(f"{status}.html"), status=status)
