"""Probes: asking for one, watching it, looking at its bytes, taking up the preset it proposes."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.confirmation import ConfirmationNeededError
from toolbench.lab.endpoints.adopt_preset import NothingToAdoptError
from toolbench.lab.endpoints.adopt_preset import adopt_preset as adopt_preset
from toolbench.lab.endpoints.probe_job import queue_probe, queue_probes
from toolbench.lab.endpoints.probe_page import get_probe_page
from toolbench.lab.models import Model, Probe, Provider
from toolbench.lab.whole_numbers import parse_whole_number
from toolbench.web.rendering import render_page


@require_POST
def start(request: HttpRequest, model_id: int) -> HttpResponse:
    """Asks for a conformance probe and shows it; one that is open is shown instead of a second."""
    model = get_object_or_404(Model.objects.select_related("provider"), pk=model_id)
    return redirect("probe", queue_probe(model, Probe.Kind.CONFORMANCE, why="A person asked for it.").pk)


@require_POST
def start_all(request: HttpRequest, provider_id: int) -> HttpResponse:
    """Asks for a conformance probe of every model of a provider; what may have to be paid for is asked about first."""
    provider = get_object_or_404(Provider, pk=provider_id)
    try:
        probes = queue_probes(provider_id, agreed=parse_whole_number(request.POST.get("agreed", "")) or 0)
    except ConfirmationNeededError as needed:
        return render_page(request, "probes/start_all.html", {"provider": provider, "needed": needed})
    messages.success(request, f"Asked for {len(probes)} probes; they are worked one after the other.")
    return redirect(f"{reverse('compatibility')}#provider-{provider_id}")


@require_safe
def show(request: HttpRequest, probe_id: int) -> HttpResponse:
    """GET /probes/ID/?exchange=; htmx asks for the live part alone while it goes on."""
    try:
        context = {"page": get_probe_page(probe_id, request.GET.get("exchange", ""))}
    except Probe.DoesNotExist:
        raise Http404(f"There is no probe {probe_id}; its model may have been deleted.") from None
    return render_page(request, "probes/show.html", context, part="live")


@require_POST
def adopt(request: HttpRequest, probe_id: int) -> HttpResponse:
    """Makes the proposed preset one of the model's workarounds."""
    probe = get_object_or_404(Probe, pk=probe_id)
    try:
        preset = adopt_preset(probe_id)
        messages.success(request, f"{preset.name} is a workaround of {probe.model_name} now, from the next launch on.")
    except NothingToAdoptError as nothing:
        messages.error(request, str(nothing))
    return redirect("model", probe.model_id)
