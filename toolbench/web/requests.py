"""Functions that read a request or answer it: user, audit list, refused forms, redirects and links."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme

from toolbench.lab.accounts.audit import Action, record_action

__all__ = [
    "Action",
    "build_link",
    "choose_local_path",
    "find_user",
    "find_username",
    "is_loopback",
    "record",
    "redirect_refused",
    "take_entered_values",
]
_ENTERED = "entered_values"  # key of the session
_UNSTORED_FIELDS = ("csrfmiddlewaretoken", "key")  # a new form gets its own CSRF token and idempotency key


def find_user(request: HttpRequest) -> User | None:
    """Return the signed-in user, or None without one."""
    return request.user if isinstance(request.user, User) else None


def find_username(request: HttpRequest) -> str:
    """Return the name of the signed-in user, or "" without one."""
    user = find_user(request)
    return user.username if user else ""


def record(request: HttpRequest, action: Action, subject: str, url: str = "") -> None:
    """Add an action of the user to the audit list.

    Args:
        request: the user's request.
        action: kind of action.
        subject: what was changed, such as "run 7".
        url: path of the subject's page; may be empty.
    """
    record_action(find_user(request), action, subject, url)


def redirect_refused(request: HttpRequest, sentence: str, url: str) -> HttpResponseRedirect:
    """Redirect to the page of a refused form, which then shows the reason and the entered values.

    Use it only for a form without secrets, since the session stores the values.

    Args:
        request: the request that sent the form.
        sentence: why the form was refused.
        url: address of the page. Its template reads the values from the context processor `entered_values`.
    """
    messages.error(request, sentence)
    values = {name: texts for name, texts in request.POST.lists() if name not in _UNSTORED_FIELDS}
    request.session[_ENTERED] = {"path": urlsplit(url).path, "values": values}
    return HttpResponseRedirect(url)


def take_entered_values(request: HttpRequest) -> Mapping[str, Sequence[str]]:
    """Return the values of the refused form of this page and delete them from the session.

    Returns:
        The values of each field, by field name; empty if no form of this page was refused.
    """
    session = getattr(request, "session", {})
    if session.get(_ENTERED, {}).get("path") != request.path:
        return {}
    values: Mapping[str, Sequence[str]] = session.pop(_ENTERED)["values"]
    return values


def choose_local_path(path: str, default: str = "/") -> str:
    """Return `path` if it is a path of this site with at most 2,048 characters, else `default`."""
    is_local = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if is_local else default


def build_link(request: HttpRequest, path: str) -> str:
    """Return a link for another person to a path of this site.

    The link begins with the site's address. If only this machine can reach that address, as without TOOLBENCH_BASE, the
    link begins with the address of the request.
    """
    if is_loopback(urlsplit(settings.BASE_URL).hostname or ""):
        return request.build_absolute_uri(path)
    return f"{settings.BASE_URL}{path}"


def is_loopback(host: str) -> bool:
    """Return whether a host is a name or an address by which only this machine can be reached."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
