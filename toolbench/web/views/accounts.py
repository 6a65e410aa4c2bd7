"""Views of accounts and of the audit list."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.accounts import people
from toolbench.lab.accounts.audit import get_audit_page
from toolbench.lab.accounts.roles import get_role
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, build_link, record
from toolbench.web.roles import Role, require_roles

MAX_PAGE = 10_000


@require_roles(read=Role.OWNER, change=Role.OWNER)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def list_people(request: HttpRequest) -> HttpResponse:
    """Show the accounts; on POST, create an account and show its sign-in link once."""
    if request.method != "POST":
        return _render_people(request)
    try:
        user, token = people.invite(request.POST.get("name", ""), request.POST.get("role", ""))
    except people.PeopleError as error:
        return _render_people(request, error=str(error), status=422)
    record(request, Action.INVITED, f"{user.username} as {get_role(user).label.lower()}", reverse("people"))
    return _render_people(request, invited=user, token=token)


@require_roles(change=Role.OWNER)
@never_cache
@require_POST
def act(request: HttpRequest, user_id: int) -> HttpResponse:
    """Change the role of an account, open or close it, or show a new sign-in link once."""
    action = request.POST.get("action", "")
    try:
        if action == "link":
            user, token = people.create_new_token(user_id)
            record(request, Action.ADDED, f"sign-in link of {user.username}", reverse("people"))
            return _render_people(request, invited=user, token=token)
        change = people.change_account(user_id, action, request.POST.get("role", ""))
        record(request, Action.CHANGED, change, reverse("people"))
        messages.success(request, f"Saved: {change}.")
    except people.PeopleError as error:
        messages.error(request, str(error))
    return redirect("people")


@require_roles(read=Role.OPERATOR)
@require_safe
def show_audit(request: HttpRequest) -> HttpResponse:
    """Show the audit list, newest first, of all users or of ?person= (GET /settings/audit/?person=&page=)."""
    page = parse_whole_number(request.GET.get("page", ""), minimum=1, maximum=MAX_PAGE) or 1
    return render_page(request, "accounts/audit.html", {"page": get_audit_page(request.GET.get("person", ""), page)})


def _render_people(
    request: HttpRequest, *, invited: User | None = None, token: str = "", error: str = "", status: int = 200
) -> HttpResponse:
    """Render the accounts and, with a `token`, the new sign-in link of `invited`."""
    typed = {"name": request.POST.get("name", ""), "role": request.POST.get("role", Role.VIEWER)} if error else {}
    context = {
        "people": people.list_people(),
        "roles": Role.choices,
        "invited": invited,
        "link": build_link(request, reverse("sign-in-link", args=[token])) if token else "",
        "hours": settings.SIGN_IN_HOURS,
        "error": error,
        "typed": {"name": "", "role": Role.VIEWER, **typed},
    }
    return render_page(request, "accounts/people.html", context, status=status)
