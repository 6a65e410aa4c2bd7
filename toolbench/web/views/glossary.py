"""View of the page Help, which explains the terms of all pages."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.results.glossary import read_glossary
from toolbench.web.rendering import render_page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the steps from a model to a decision, and the terms of the glossary (GET /help/).

    The first name of each term is its anchor, to which other pages can link.
    """
    return render_page(request, "glossary/show.html", {"sections": read_glossary()})
