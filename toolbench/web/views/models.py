"""The models that are known, by provider."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.endpoints.adopt_preset import NothingToAdopt
from toolbench.lab.endpoints.canonical_models import known_weights, name_weights
from toolbench.lab.endpoints.model_page import get_model_page
from toolbench.lab.endpoints.refused_parameters import take_up
from toolbench.lab.endpoints.setup_pages import get_models
from toolbench.lab.models import Model
from toolbench.lab.plain_text import plain
from toolbench.web.rendering import page

_GONE = "There is no model {}; its provider may have been deleted."


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /models/?q="""
    search = plain(request.GET.get("q", ""))
    return page(request, "models/show.html", {"groups": get_models(search), "q": search})


@require_safe
def one(request: HttpRequest, model_id: int) -> HttpResponse:
    """GET /models/ID/: what it can do, who says so, and its probes."""
    try:
        return page(request, "models/one.html", {"page": get_model_page(model_id), "weights": known_weights()})
    except Model.DoesNotExist:
        raise Http404(_GONE.format(model_id)) from None


@require_POST
def weights(request: HttpRequest, model_id: int) -> HttpResponse:
    """POST /models/ID/weights/: says which weights it is."""
    kept = name_weights(model_id, request.POST.get("weights", ""))
    if kept is None:
        raise Http404(_GONE.format(model_id))
    messages.success(
        request, f"Its weights are {kept or 'not known'}, from the next run on; runs keep what they froze."
    )
    return redirect("model", model_id)


@require_POST
def leave_out(request: HttpRequest, model_id: int) -> HttpResponse:
    """POST /models/ID/left-out/: makes what its endpoint refuses a setting of the model."""
    try:
        preset = take_up(model_id)
        messages.success(request, f"{preset.name} is a workaround of the model now, from the next launch on.")
    except NothingToAdopt as error:
        messages.error(request, str(error))
    except Model.DoesNotExist:
        raise Http404(_GONE.format(model_id)) from None
    return redirect("model", model_id)
