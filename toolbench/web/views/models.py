"""The models that are known, by provider."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.connections.setup_pages import get_models
from toolbench.lab.models import Model
from toolbench.lab.probes.model_page import get_model_page
from toolbench.web.pages import page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /models/?q="""
    search = request.GET.get("q", "").replace("\0", "").strip()
    return page(request, "models/show.html", {"groups": get_models(search), "q": search})


@require_safe
def one(request: HttpRequest, model_id: int) -> HttpResponse:
    """GET /models/ID/: what it can do, who says so, and its probes."""
    try:
        return page(request, "models/one.html", {"page": get_model_page(model_id)})
    except Model.DoesNotExist:
        raise Http404(f"There is no model {model_id}; its provider may have been deleted.") from None
