"""Work that the web server does before it serves, so that the first request does not wait for it."""

import logging

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import DatabaseError, connection
from django.http import HttpRequest
from django.template.loader import get_template
from django.urls import get_resolver, resolve, reverse
from django.utils.module_loading import import_string

from toolbench.installation import ASSETS

logger = logging.getLogger(__name__)

# URL names of pages whose figures stay in memory until the sums over all ended runs change.
CACHED_PAGES = ("matrix", "decide", "compare", "latency", "failures")


def prepare_pages() -> None:
    """Import all views, build the table that `reverse` uses, and compile all HTML templates."""
    get_resolver().url_patterns  # noqa: B018 (imports the views)
    reverse("first")
    import_string(settings.MESSAGE_STORAGE)  # Django would import it when it serves the first request
    folder = ASSETS / "templates"
    for path in folder.rglob("*.html"):
        get_template(path.relative_to(folder).as_posix())


def prepare_results() -> None:
    """Compute the figures of the result pages once.

    If the database is unavailable, the first requests compute them.
    """
    try:
        for name in CACHED_PAGES:
            _visit(reverse(name))
    except DatabaseError as error:
        logger.warning("The result pages are not prepared: %s", error)
    finally:
        connection.close()


def _visit(path: str) -> None:
    """Call the view of a page as an anonymous user, without the middleware."""
    request = HttpRequest()
    request.method, request.path, request.path_info = "GET", path, path
    request.user = AnonymousUser()
    match = resolve(path)
    match.func(request, *match.args, **match.kwargs)
