"""View that shows the retention rules of bodies, previews the effect of other rules, and saves rules."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from toolbench.lab.operations.retention_page import RetentionPage, get_retention_page
from toolbench.lab.operations.retention_policy import Kind, parse_retention_policy, save_retention_policy
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.rendering import redirect_to_short_address, render_page
from toolbench.web.requests import Action, record
from toolbench.web.roles import Role, require_roles


@require_roles(change=Role.OWNER)
@require_http_methods(["GET", "HEAD", "POST"])
@redirect_to_short_address
def edit(request: HttpRequest) -> HttpResponse:
    """Show the rules; on POST, save them (/settings/retention/).

    With ?KIND=DAYS, show what other rules would remove.
    """
    if request.method == "POST":
        return _save(request)
    is_preview = any(kind in request.GET for kind in Kind.values)
    page = get_retention_page(request.GET.dict() if is_preview else None)
    return _render(request, page)


def _render(request: HttpRequest, page: RetentionPage, *, needs_confirmation: bool = False) -> HttpResponse:
    context = {"page": page, "needs_confirmation": needs_confirmation}
    return render_page(request, "settings/retention.html", context, status=422 if page.has_errors else 200)


def _save(request: HttpRequest) -> HttpResponse:
    """Save the rules of the form; show them again if one is invalid or their effect must be confirmed."""
    typed = request.POST.dict()
    page = get_retention_page(typed)
    if page.has_errors:
        return _render(request, page)
    if page.trial_count > (parse_whole_number(typed.get("confirmed", "")) or 0):
        return _render(request, page, needs_confirmation=True)
    save_retention_policy(parse_retention_policy(typed))
    record(request, Action.CHANGED, "rules of retention", reverse("retention"))
    messages.success(request, "Rules saved. Within a minute, the scheduler removes what is due.")
    return redirect("retention")
