"""View of the retention of bodies: the rules, a dry run of them, and saving them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.operations.retention_page import get_retention_page
from toolbench.lab.operations.retention_policy import Kind, parse_retention_policy, save_retention_policy
from toolbench.web.rendering import redirect_to_short_address, render_page
from toolbench.web.requests import Action, record
from toolbench.web.roles import Role, require_roles


@require_roles(change=Role.OWNER)
@require_http_methods(["GET", "HEAD", "POST"])
@redirect_to_short_address
def edit(request: HttpRequest) -> HttpResponse:
    """Show the rules, or with ?KIND=DAYS what other rules would remove; on POST, save them (/settings/retention/)."""
    if request.method == "POST":
        return _save(request)
    is_preview = any(kind in request.GET for kind in Kind.values)
    page = get_retention_page(request.GET.dict() if is_preview else None)
    return render_page(request, "settings/retention.html", {"page": page}, status=422 if page.has_errors else 200)


def _save(request: HttpRequest) -> HttpResponse:
    """Save the sent rules; if one is invalid, show the page with its error."""
    try:
        save_retention_policy(parse_retention_policy(request.POST.dict()))
    except InvalidFieldsError:
        page = get_retention_page(request.POST.dict())
        return render_page(request, "settings/retention.html", {"page": page}, status=422)
    record(request, Action.CHANGED, "rules of retention", reverse("retention"))
    messages.success(request, "Rules saved. The scheduler removes what is due within a minute.")
    return redirect("retention")
