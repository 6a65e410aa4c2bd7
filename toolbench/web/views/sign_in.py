"""Views of the browser session: sign in with a link, sign out, choose the theme."""

import re
from urllib.parse import quote, unquote

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from toolbench.lab.accounts.sign_in import redeem_token
from toolbench.web.context_processors import THEMES
from toolbench.web.requests import choose_local_path
from toolbench.web.roles import Role, require_roles

_BACKEND = "django.contrib.auth.backends.ModelBackend"
_PREFETCH = re.compile(r"prefetch|prerender|preview", re.IGNORECASE)
_PURPOSE_HEADERS = ("Sec-Purpose", "Purpose", "X-Purpose", "X-Moz")
# Values that these headers have, if present, when a person follows a link. For images and scripts they differ.
_NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
# User agents of mail, chat and search programs that request a link to show a preview of it.
_PREVIEW_AGENTS = re.compile(
    r"bot\b|crawl|spider|preview|facebookexternalhit|whatsapp|slack|skype|embedly|iframely|unfurl|scan", re.IGNORECASE
)
YEAR_SECONDS = 60 * 60 * 24 * 365


@login_not_required
@require_GET
def show(request: HttpRequest) -> HttpResponse:
    """Show how to get a sign-in link; store ?next= in a cookie for SIGN_IN_HOURS or until a link is used."""
    response = render(request, "sign_in/show.html", {"hours": settings.SIGN_IN_HOURS, "spent": False})
    if next_url := choose_local_path(request.GET.get("next", ""), ""):
        age = settings.SIGN_IN_HOURS * 3600
        name, path = settings.NEXT_PAGE_COOKIE_NAME, request.path
        secure = settings.SESSION_COOKIE_SECURE
        response.set_cookie(name, quote(next_url), age, path=path, secure=secure, httponly=True, samesite="Lax")
    return response


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def follow(request: HttpRequest, token: str) -> HttpResponse:
    """Redeem a sign-in link.

    A GET by a person or a POST redeems the link. Any other GET and each HEAD, such as those of mail programs, get a
    page whose button sends the POST. A browser that is signed in is redirected without redeeming the link.
    """
    if request.user.is_authenticated:
        return _redirect_to_requested_page(request)
    if request.method != "POST" and not _is_followed(request):
        return render(request, "sign_in/follow.html")
    owner = redeem_token(token)
    if owner is None:
        return render(request, "sign_in/show.html", {"hours": settings.SIGN_IN_HOURS, "spent": True}, status=410)
    login(request, owner, backend=_BACKEND)
    return _redirect_to_requested_page(request)


def _is_followed(request: HttpRequest) -> bool:
    """Return whether a person seems to follow the link.

    The request must be a GET and neither a prefetch nor a preview.
    """
    headers = request.headers
    return (
        request.method == "GET"
        and not any(_PREFETCH.search(headers.get(name, "")) for name in _PURPOSE_HEADERS)
        and all(headers.get(name, value) == value for name, value in _NAVIGATION.items())
        and not _PREVIEW_AGENTS.search(headers.get("User-Agent", ""))
    )


def _redirect_to_requested_page(request: HttpRequest) -> HttpResponse:
    response = redirect(choose_local_path(unquote(request.COOKIES.get(settings.NEXT_PAGE_COOKIE_NAME, ""))))
    response.delete_cookie(settings.NEXT_PAGE_COOKIE_NAME, path=reverse("sign-in"), samesite="Lax")
    return response


@require_roles(change=Role.VIEWER)
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out of this browser."""
    logout(request)
    return redirect("sign-in")


@require_roles(change=Role.VIEWER)
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Set the theme, "system" for an unknown one, and redirect to the path in the field `next`."""
    theme = request.POST.get("theme", "system")
    response = HttpResponseRedirect(choose_local_path(request.POST.get("next", "")))
    response.set_cookie("theme", theme if theme in THEMES else "system", max_age=YEAR_SECONDS, samesite="Lax")
    return response
