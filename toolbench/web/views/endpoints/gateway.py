"""Views of the gateway: its aliases and its traces."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.interchange.traffic.drafts import import_traffic
from toolbench.lab.models import GatewayTrace, ModelAlias
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.serving.aliases import find_gateway_url
from toolbench.lab.serving.aliases import list_aliases as load_aliases
from toolbench.lab.serving.traces import NoDraftError, build_traffic_line, get_trace_page, list_bodies
from toolbench.web.forms.aliases import AliasForm
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_owner, record


@require_safe
def list_aliases(request: HttpRequest) -> HttpResponse:
    """Show the aliases and the address of the gateway (GET /gateway/)."""
    return render_page(request, "gateway/list.html", {"aliases": load_aliases(), "url": find_gateway_url()})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form, filled in from the measured configuration ?config=; on POST, create the alias."""
    form = (
        AliasForm(request.POST)
        if request.method == "POST"
        else AliasForm.from_config(parse_whole_number(request.GET.get("config", "")))
    )
    return _save(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, alias_id: int) -> HttpResponse:
    """Show the form of an alias; on POST, save it."""
    alias = get_object_or_404(ModelAlias, pk=alias_id)
    form = AliasForm(request.POST) if request.method == "POST" else AliasForm.from_alias(alias)
    return _save(request, form, alias)


def _save(request: HttpRequest, form: AliasForm, alias: ModelAlias | None) -> HttpResponse:
    saved = form.save(owner=find_owner(request), alias=alias) if request.method == "POST" else None
    if saved is None:
        context = {"form": form, "alias": alias}
        return render_page(request, "gateway/edit.html", context, status=422 if form.errors else 200)
    action = Action.CHANGED if alias else Action.ADDED
    record(request, action, f"alias {saved.name}", reverse("alias", args=[saved.pk]))
    messages.success(request, f"Saved: the gateway serves {saved.name} within a second.")
    return redirect("gateway")


@require_POST
def delete(request: HttpRequest, alias_id: int) -> HttpResponse:
    """Delete an alias; its traces are kept."""
    alias = get_object_or_404(ModelAlias, pk=alias_id)
    alias.delete()
    record(request, Action.DELETED, f"alias {alias.name}")
    messages.success(request, f"The alias {alias.name} is deleted. Its traces are kept.")
    return redirect("gateway")


@require_safe
def list_traces(request: HttpRequest) -> HttpResponse:
    """Show the traces of ?alias=, or of all aliases, newest first (GET /gateway/traces/?alias=&before=)."""
    alias = request.GET.get("alias", "").replace("\0", "")
    page = get_trace_page(alias, parse_whole_number(request.GET.get("before", "")))
    return render_page(request, "gateway/traces.html", {"page": page, "alias": alias})


@require_safe
def show_trace(request: HttpRequest, trace_id: int) -> HttpResponse:
    """Show one trace with the bodies that were kept (GET /gateway/traces/ID/)."""
    trace = get_object_or_404(GatewayTrace, pk=trace_id)
    return render_page(request, "gateway/trace.html", {"trace": trace, "bodies": list_bodies(trace)})


@require_POST
def make_draft(request: HttpRequest, trace_id: int) -> HttpResponse:
    """Create a draft of a test case from a trace."""
    trace = get_object_or_404(GatewayTrace, pk=trace_id)
    try:
        result = import_traffic(build_traffic_line(trace), f"trace {trace.pk} of the gateway")
    except NoDraftError as error:
        messages.error(request, str(error))
        return redirect("gateway-trace", trace.pk)
    reasons = " ".join(f"No draft was made: {group.reason}." for group in result.skipped)
    messages.success(request, reasons or ("A draft was made." if result.added else "This request is a draft already."))
    record(request, Action.ADDED, f"draft of a case from trace {trace.pk}", reverse("case-drafts"))
    return redirect("case-drafts")
