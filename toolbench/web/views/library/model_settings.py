"""View of a model's settings: workarounds, declared capabilities and price, with versions."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from toolbench.lab.library.model_settings import ModelSettingsPage, get_model_settings
from toolbench.lab.models import Model
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.forms.model_settings import ModelSettingsForm
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_username, record


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, model_id: int) -> HttpResponse:
    """Show the settings of a model and their versions; on POST, save a new version."""
    page = _get_page_or_404(request, model_id)
    form = ModelSettingsForm(request.POST if request.method == "POST" else None, page)
    number = form.save(page.model, find_username(request))
    if number is None:
        return render_page(
            request, "models/settings.html", {"page": page, "form": form}, status=422 if form.is_bound else 200
        )
    address = reverse("model-settings", args=[model_id])
    record(request, Action.CHANGED, f"settings of model {page.model}, version {number}", address)
    messages.success(request, f"Saved as version {number}. New runs use it; earlier runs keep their settings.")
    return redirect(address)


def _get_page_or_404(request: HttpRequest, model_id: int) -> ModelSettingsPage:
    """Return the page of a model, with the difference between the versions ?old= and ?new=."""
    old, new = (parse_whole_number(request.GET.get(name, "")) for name in ("old", "new"))
    try:
        return get_model_settings(model_id, old, new)
    except Model.DoesNotExist:
        raise Http404(f"There is no model {model_id}; its provider may have been deleted.") from None
