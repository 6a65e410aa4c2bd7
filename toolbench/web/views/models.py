"""The models that are known, by provider."""

from django.http import HttpRequest, HttpResponse

from toolbench.lab.setup_pages import get_models
from toolbench.web.pages import page


def show(request: HttpRequest) -> HttpResponse:
    """GET /models/?q="""
    search = request.GET.get("q", "").replace("\0", "").strip()
    return page(request, "models/show.html", {"groups": get_models(search), "q": search})
