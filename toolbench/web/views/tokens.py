"""Views of the user's API tokens."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from toolbench.lab.accounts import tokens
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import ApiToken
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_user, record
from toolbench.web.roles import Role, require_roles

NEVER = "never"
# Values and labels of the field `days`.
EXPIRIES = (*((str(days), f"{days} days") for days in tokens.EXPIRY_DAYS), (NEVER, "no expiry"))


@require_roles(change=Role.VIEWER)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def list_tokens(request: HttpRequest) -> HttpResponse:
    """Show the user's tokens; on POST, create one and show its secret once."""
    if request.method != "POST":
        return _render_tokens(request)
    user, days = find_user(request), request.POST.get("days", "")
    assert user is not None
    expiry_days = None if days == NEVER else parse_whole_number(days) or 0
    try:
        scopes = request.POST.getlist("scopes")
        token, secret = tokens.create_api_token(user, request.POST.get("name", ""), scopes, expiry_days)
    except InvalidFieldsError as error:
        return _render_tokens(request, error=str(error), status=422)
    record(request, Action.ADDED, f"token {token} with {', '.join(token.scopes)}", reverse("tokens"))
    return _render_tokens(request, new_token=token, secret=secret)


@require_roles(change=Role.VIEWER)
@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke a token of the user (POST /settings/tokens/ID/revoke/)."""
    user = find_user(request)
    assert user is not None
    try:
        token = tokens.revoke_token(user, token_id)
    except tokens.TokenError as error:
        messages.error(request, str(error))
    else:
        record(request, Action.REVOKED, f"token {token}", reverse("tokens"))
        messages.success(request, f"Revoked: {token}. Requests with it are refused from now on.")
    return redirect("tokens")


def _render_tokens(
    request: HttpRequest, *, new_token: ApiToken | None = None, secret: str = "", error: str = "", status: int = 200
) -> HttpResponse:
    user = find_user(request)
    assert user is not None
    context: dict[str, object] = {"tokens": tokens.list_tokens(user), "scopes": tokens.list_allowed_scopes(user)}
    context |= {"expiries": EXPIRIES, "new_token": new_token, "secret": secret, "error": error}
    typed = (request.POST.get("name", ""), request.POST.get("days", ""), request.POST.getlist("scopes"))
    defaults = ("", str(tokens.EXPIRY_DAYS[1]), [tokens.Scope.READ])
    context |= dict(zip(("typed_name", "typed_days", "typed_scopes"), typed if error else defaults, strict=True))
    return render_page(request, "tokens/list.html", context, status=status)
