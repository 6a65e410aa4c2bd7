"""What other settings would have made of stored answers."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from toolbench.lab.replays.what_if import NothingToReplay, Scope
from toolbench.lab.replays.what_if_page import get_what_if
from toolbench.lab.replays.what_if_plan import WhatIf
from toolbench.web.pages import page


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """GET /what-if/?trial= (or cell=, run=) with the settings in the address; ?ablate=1 leaves each transform out."""
    try:
        scope = Scope.from_query(request.GET)
        asked = WhatIf.from_query(dict(request.GET.lists()))
        found = get_what_if(scope, asked, with_ablation=request.GET.get("ablate") == "1")
    except NothingToReplay as nothing:
        raise Http404(str(nothing)) from None
    return page(request, "what_if/show.html", {"page": found, "permalink": request.get_full_path()}, part="found")
