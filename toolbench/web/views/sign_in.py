"""Signing in with a printed link, and out again."""

from urllib.parse import quote, unquote

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from toolbench.lab.signing_in import redeem
from toolbench.web.local_paths import local_path

_WANTED = "wanted"  # the cookie with the page that was asked for before signing in
_BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@require_GET
def show(request: HttpRequest) -> HttpResponse:
    """How to get a link. The page that was wanted (`?next=`) is remembered for whoever follows one in this browser."""
    response = render(request, "sign_in/show.html", {"hours": settings.SIGN_IN_HOURS})
    if wanted := local_path(request.GET.get("next", ""), ""):
        age = settings.SIGN_IN_HOURS * 3600
        response.set_cookie(_WANTED, quote(wanted), max_age=age, path=request.path, httponly=True, samesite="Lax")
    return response


@login_not_required
@require_GET
def follow(request: HttpRequest, token: str) -> HttpResponse:
    """Spends the link. Whoever is signed in already keeps it for another browser; a browser that only fetches ahead
    does not spend it."""
    if request.user.is_authenticated or "prefetch" in request.headers.get("Sec-Purpose", ""):
        return _to_wanted(request)
    owner = redeem(token)
    if owner is None:
        return render(request, "sign_in/show.html", {"hours": settings.SIGN_IN_HOURS, "spent": True}, status=410)
    login(request, owner, backend=_BACKEND)
    return _to_wanted(request)


def _to_wanted(request: HttpRequest) -> HttpResponse:
    response = redirect(local_path(unquote(request.COOKIES.get(_WANTED, ""))))
    response.delete_cookie(_WANTED, path=reverse("sign-in"), samesite="Lax")
    return response


@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Signs out of this browser."""
    logout(request)
    return redirect("sign-in")
