"""Views of models: the list, one model with its actions, and the probe results of all models."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.endpoints.adopt_preset import NothingToAdoptError
from toolbench.lab.endpoints.canonical_models import list_canonical_names, set_canonical_name
from toolbench.lab.endpoints.compatibility_page import get_provider_tables
from toolbench.lab.endpoints.model_page import get_model_page
from toolbench.lab.endpoints.refused_parameters import adopt_omissions
from toolbench.lab.endpoints.setup_pages import get_models
from toolbench.lab.models import Model
from toolbench.lab.query_params import clean_text
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, record

_MODEL_NOT_FOUND = "There is no model {}; its provider may have been deleted."


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the models that match ?q= (GET /models/)."""
    search = clean_text(request.GET.get("q", ""))
    return render_page(request, "models/show.html", {"groups": get_models(search), "q": search})


@require_safe
def show_model(request: HttpRequest, model_id: int) -> HttpResponse:
    """Show a model's capabilities with their sources, and its probes (GET /models/ID/)."""
    try:
        return render_page(
            request, "models/one.html", {"page": get_model_page(model_id), "canonical_names": list_canonical_names()}
        )
    except Model.DoesNotExist:
        raise Http404(_MODEL_NOT_FOUND.format(model_id)) from None


@require_POST
def save_canonical_name(request: HttpRequest, model_id: int) -> HttpResponse:
    """Set the canonical model of a model (POST /models/ID/weights/)."""
    canonical_name = set_canonical_name(model_id, request.POST.get("weights", ""))
    if canonical_name is None:
        raise Http404(_MODEL_NOT_FOUND.format(model_id))
    record(request, Action.CHANGED, f"canonical model of model {model_id}", reverse("model", args=[model_id]))
    messages.success(
        request, f"Its canonical model is {canonical_name or 'unknown'} from now on. Earlier runs keep theirs."
    )
    return redirect("model", model_id)


@require_POST
def adopt_omitted_parameters(request: HttpRequest, model_id: int) -> HttpResponse:
    """Save a preset that omits the parameters that the endpoint refuses (POST /models/ID/left-out/)."""
    try:
        preset = adopt_omissions(model_id)
        record(request, Action.ADDED, f"preset {preset.name}", reverse("model", args=[model_id]))
        messages.success(request, f"{preset.name} is a workaround of the model now. New runs use it.")
    except NothingToAdoptError as error:
        messages.error(request, str(error))
    except Model.DoesNotExist:
        raise Http404(_MODEL_NOT_FOUND.format(model_id)) from None
    return redirect("model", model_id)


@require_safe
def show_compatibility(request: HttpRequest) -> HttpResponse:
    """Show the result of each check of a probe for each model (GET /compatibility/)."""
    return render_page(request, "compatibility/show.html", {"tables": get_provider_tables()})
