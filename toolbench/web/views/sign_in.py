"""Signing in with a printed link, and out again."""

from django.conf import settings
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from toolbench.lab.signing_in import redeem

_BACKEND = "django.contrib.auth.backends.ModelBackend"


@login_not_required
@require_GET
def show(request: HttpRequest) -> HttpResponse:
    """How to get a link."""
    return render(request, "sign_in/show.html", {"hours": settings.SIGN_IN_HOURS})


@login_not_required
@require_GET
def follow(request: HttpRequest, token: str) -> HttpResponse:
    """Spends the link. Whoever is signed in already keeps it for another browser; a browser that only fetches ahead
    does not spend it."""
    if request.user.is_authenticated or "prefetch" in request.headers.get("Sec-Purpose", ""):
        return redirect("/")
    owner = redeem(token)
    if owner is None:
        return render(request, "sign_in/show.html", {"hours": settings.SIGN_IN_HOURS, "spent": True}, status=410)
    login(request, owner, backend=_BACKEND)
    return redirect("/")


@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Signs out of this browser."""
    logout(request)
    return redirect("sign-in")
