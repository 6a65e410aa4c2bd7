"""Views of share links: create, list and revoke them, and show the pages that they open."""

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.accounts import share_links
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.interchange.report.html_page import (
    PageUnavailableError,
    check_shareable,
    render_run_report,
    render_shared_page,
)
from toolbench.lab.models import ShareLink
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.downloads import build_file_response
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, build_link, find_user, record
from toolbench.web.roles import Role, require_roles


@login_not_required
@never_cache
@require_safe
def show(request: HttpRequest, token: str) -> HttpResponse:
    """Show the run, comparison or trial of a share link, without a sign-in (GET /shared/TOKEN/)."""
    link = share_links.find_share_link(token)
    try:
        content = render_shared_page(link) if link else None
    except PageUnavailableError as error:
        raise Http404(str(error)) from None
    if content is None:
        raise Http404("This link has expired or was revoked. Ask for a new one.")
    return HttpResponse(content, headers={"X-Robots-Tag": "noindex", "Referrer-Policy": "no-referrer"})


@require_roles(read=Role.OPERATOR)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def list_links(request: HttpRequest) -> HttpResponse:
    """Show the valid links of the user, for an owner those of all users; on POST, create a link."""
    if request.method != "POST":
        return _render_links(request)
    try:
        link = _create_link(request)
    except InvalidFieldsError as error:
        return _render_links(request, error=str(error), status=422)
    record(request, Action.ADDED, f"share {link}", reverse("links"))
    return _render_links(request, new_link=link)


@require_POST
def revoke(request: HttpRequest, link_id: int) -> HttpResponse:
    """Revoke a link that the user may revoke (POST /settings/links/ID/revoke/)."""
    user = find_user(request)
    assert user is not None
    link = share_links.revoke_share_link(user, link_id)
    if link is None:
        messages.error(request, "There is no such link; it may have expired or been revoked already.")
    else:
        record(request, Action.REVOKED, f"share {link}", reverse("links"))
        messages.success(request, f"Revoked: {link}.")
    return redirect("links")


@require_safe
def download_report(request: HttpRequest, run_id: int) -> HttpResponse:
    """Return a run as one HTML file that opens offline (GET /runs/ID/report.html)."""
    try:
        content = render_run_report(run_id)
    except PageUnavailableError as error:
        raise Http404(str(error)) from None
    return build_file_response(content, "text/html; charset=utf-8", name=f"toolbench-run-{run_id}.html")


def _create_link(request: HttpRequest) -> ShareLink:
    """Create the link that the sent form describes.

    Raises:
        InvalidFieldsError: a field is not valid, or the run, comparison or trial cannot be shared.
    """
    user = find_user(request)
    assert user is not None
    kind, query = (request.POST.get(name, "") for name in ("kind", "query"))
    target, days = (parse_whole_number(request.POST.get(name, "")) for name in ("target", "days"))
    check_shareable(kind, query)
    return share_links.create_share_link(user, kind, target=target, query=query, days=days)


def _render_links(
    request: HttpRequest, *, new_link: ShareLink | None = None, error: str = "", status: int = 200
) -> HttpResponse:
    user = find_user(request)
    assert user is not None
    links = [(link, _build_address(link)) for link in share_links.list_share_links(user)]
    url = build_link(request, _build_address(new_link)) if new_link else ""
    context = {"links": links, "new_link": new_link, "url": url, "error": error}
    return render_page(request, "shared/list.html", context, status=status)


def _build_address(link: ShareLink) -> str:
    return reverse("shared", args=[share_links.build_link_token(link)])
