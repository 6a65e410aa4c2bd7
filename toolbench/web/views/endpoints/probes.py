"""Views of probes: start, show, and adopt the proposed preset."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.endpoints.adopt_preset import NothingToAdoptError, adopt_preset
from toolbench.lab.endpoints.probe_job import queue_probe, queue_probes
from toolbench.lab.endpoints.probe_page import get_probe_page
from toolbench.lab.models import Model, Probe, Provider
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, record


@require_POST
def start(request: HttpRequest, model_id: int) -> HttpResponse:
    """Queue a conformance probe of a model, unless one is open, and redirect to it."""
    model = get_object_or_404(Model.objects.select_related("provider"), pk=model_id)
    probe = queue_probe(model, Probe.Kind.CONFORMANCE, why="A user requested this probe.")
    record(request, Action.LAUNCHED, f"probe of {model.name}", reverse("probe", args=[probe.pk]))
    return redirect("probe", probe.pk)


@require_POST
def start_all(request: HttpRequest, provider_id: int) -> HttpResponse:
    """Queue conformance probes of the models of a provider; ask for confirmation before paid requests."""
    provider = get_object_or_404(Provider, pk=provider_id)
    try:
        probes = queue_probes(provider_id, confirmed_requests=parse_whole_number(request.POST.get("agreed", "")) or 0)
    except PaidRequestsUnconfirmedError as needed:
        return render_page(request, "probes/start_all.html", {"provider": provider, "needed": needed})
    count = f"{len(probes):,} probe{pluralize(probes)}"
    record(request, Action.LAUNCHED, f"{count} of {provider.name}", reverse("compatibility"))
    messages.success(request, f"{count} {pluralize(probes, 'is,are')} queued. Probes run one after the other.")
    return redirect(f"{reverse('compatibility')}#provider-{provider_id}")


@require_safe
def show(request: HttpRequest, probe_id: int) -> HttpResponse:
    """Show a probe (GET /probes/ID/?exchange=), or only its live part for htmx."""
    try:
        context = {"page": get_probe_page(probe_id, request.GET.get("exchange", ""))}
    except Probe.DoesNotExist:
        raise Http404(f"There is no probe {probe_id}; its model may have been deleted.") from None
    return render_page(request, "probes/show.html", context, part="live")


@require_POST
def adopt(request: HttpRequest, probe_id: int) -> HttpResponse:
    """Save the preset that a probe proposes as a workaround of its model."""
    probe = get_object_or_404(Probe, pk=probe_id)
    try:
        preset = adopt_preset(probe_id)
        record(request, Action.ADDED, f"preset {preset.name}", reverse("model", args=[probe.model_id]))
        messages.success(request, f"{preset.name} is a workaround of {probe.model_name} now. New runs use it.")
    except NothingToAdoptError as error:
        messages.error(request, str(error))
    return redirect("model", probe.model_id)
