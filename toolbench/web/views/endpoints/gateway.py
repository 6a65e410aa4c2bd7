"""Views of the gateway: its aliases and its traces."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.interchange.traffic.drafts import import_trace
from toolbench.lab.models import GatewayTrace, ModelAlias
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.decide.promotion import get_promotion_source
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.trial.gateway_trace import build_gateway_trace_view, parse_trace_query
from toolbench.lab.serving.aliases import find_gateway_url, list_alias_names, list_aliases_with_fallback
from toolbench.lab.serving.aliases import list_aliases as load_aliases
from toolbench.lab.serving.bindings import RollbackError, list_bindings
from toolbench.lab.serving.bindings import roll_back as restore_binding
from toolbench.lab.serving.traces import (
    NoDraftError,
    can_make_draft,
    get_trace_page,
    list_bodies,
    render_trace_retention,
)
from toolbench.web.forms.aliases import AliasForm, PromotionForm
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_user, find_username, record


@require_safe
def list_aliases(request: HttpRequest) -> HttpResponse:
    """Show the aliases and the address of the gateway (GET /gateway/)."""
    return render_page(request, "gateway/list.html", {"rows": load_aliases(), "url": find_gateway_url()})


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """Show the form of a new alias; on POST, create it."""
    return _save(request, AliasForm(request.POST if request.method == "POST" else None))


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, alias_id: int) -> HttpResponse:
    """Show the form of an alias; on POST, save it."""
    alias = get_object_or_404(ModelAlias, pk=alias_id)
    return _save(request, AliasForm(request.POST if request.method == "POST" else None, alias=alias))


def _save(request: HttpRequest, form: AliasForm) -> HttpResponse:
    alias = form.alias
    saved = form.save(owner=find_user(request)) if request.method == "POST" else None
    if saved is None:
        context = {"form": form, "alias": alias, "bindings": list_bindings(alias) if alias else ()}
        return render_page(request, "gateway/edit.html", context, status=422 if form.errors else 200)
    action = Action.CHANGED if alias else Action.ADDED
    record(request, action, f"alias {saved.name}", reverse("alias", args=[saved.pk]))
    messages.success(request, f"Saved: the gateway serves {saved.name} within a second.")
    return redirect("gateway")


@require_http_methods(["GET", "HEAD", "POST"])
def promote(request: HttpRequest) -> HttpResponse:
    """Show the form that gives an alias the settings of ?record= or ?candidate=; on POST, promote them."""
    values = request.POST if request.method == "POST" else request.GET
    config_id, record_id = (parse_whole_number(values.get(name, "")) for name in ("candidate", "record"))
    if (source := get_promotion_source(config_id, record_id)) is None:
        raise Http404("There is no such configuration or record, or its model was deleted.")
    form = PromotionForm(source, request.POST or None, query=DecideQuery.from_query(request.GET).query())
    alias = form.save(find_user(request)) if request.method == "POST" else None
    if alias is None:
        context = {"form": form, "source": source, "names": list_alias_names()}
        return render_page(request, "gateway/promote.html", context, status=422 if form.errors else 200)
    record(request, Action.CHANGED, f"alias {alias.name}: promoted", reverse("alias", args=[alias.pk]))
    messages.success(request, f"Promoted: the gateway serves {alias.name} with these settings within a second.")
    return redirect("alias", alias.pk)


@require_POST
def roll_back(request: HttpRequest, alias_id: int) -> HttpResponse:
    """Give an alias the settings of the binding whose id is in the field `binding`."""
    alias = get_object_or_404(ModelAlias, pk=alias_id)
    binding_id = parse_whole_number(request.POST.get("binding", "")) or 0
    try:
        binding = restore_binding(alias, binding_id, who=find_username(request))
    except RollbackError as error:
        messages.error(request, f"Nothing was changed. {error}")
        return redirect("alias", alias.pk)
    record(request, Action.CHANGED, f"alias {alias.name}: rolled back", reverse("alias", args=[alias.pk]))
    messages.success(request, f"Rolled back: {alias.name} is served by {binding.model_name} within a second.")
    return redirect("alias", alias.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, alias_id: int) -> HttpResponse:
    """Ask for confirmation; on POST, delete the alias with its bindings. Its traces are kept."""
    alias = get_object_or_404(ModelAlias, pk=alias_id)
    if request.method != "POST":
        return render_page(
            request, "gateway/delete.html", {"alias": alias, "used_by": list_aliases_with_fallback(alias)}
        )
    alias.delete()
    record(request, Action.DELETED, f"alias {alias.name}")
    messages.success(request, f"The alias {alias.name} is deleted. Its traces are kept.")
    return redirect("gateway")


@require_safe
def list_traces(request: HttpRequest) -> HttpResponse:
    """Show the traces of ?alias=, or of all aliases, newest first (GET /gateway/traces/).

    With ?before=ID, show those older than trace ID.
    """
    alias = request.GET.get("alias", "").replace("\0", "")
    page = get_trace_page(alias, parse_whole_number(request.GET.get("before", "")))
    return render_page(request, "gateway/traces.html", {"page": page, "alias": alias, "age": render_trace_retention()})


@require_safe
def show_trace(request: HttpRequest, trace_id: int) -> HttpResponse:
    """Show one trace with its steps and the bodies that were kept (GET /gateway/traces/ID/?view=&step=)."""
    row = get_object_or_404(GatewayTrace, pk=trace_id)
    query = parse_trace_query(request.GET)
    view = build_gateway_trace_view(row, query)
    # Templates of the trial page read the view under the name `trial_page`.
    context = {"row": row, "trial_page": view, "page_query": query, "bodies": list_bodies(row)}
    return render_page(request, "gateway/trace.html", context | {"can_make_draft": can_make_draft(row)})


@require_POST
def make_draft(request: HttpRequest, trace_id: int) -> HttpResponse:
    """Create a draft of a test case from a trace."""
    trace = get_object_or_404(GatewayTrace, pk=trace_id)
    try:
        is_added = import_trace(trace)
    except NoDraftError as error:
        messages.error(request, str(error))
        return redirect("gateway-trace", trace.pk)
    messages.success(request, "A draft was made." if is_added else "This request is a draft already.")
    if is_added:
        record(request, Action.ADDED, f"draft of a test case from trace {trace.pk}", reverse("case-drafts"))
    return redirect("case-drafts")
