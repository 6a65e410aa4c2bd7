"""Views of replays: results of stored answers with other settings."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.replays.queue import delete_failed_replays
from toolbench.lab.replays.what_if import NothingToReplayError, ReplayScope
from toolbench.lab.replays.what_if_page import get_what_if_page
from toolbench.lab.replays.what_if_settings import WhatIfSettings
from toolbench.web.rendering import render_page
from toolbench.web.roles import Role, require_roles


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the replay of ?trial=, ?cell= or ?run= with the settings of the URL.

    With ?ablate=1, also show the results without each single transform or repair, and without all of them. If these are
    too many replays, a sentence says so instead.
    """
    try:
        scope = ReplayScope.from_query(request.GET)
        settings = WhatIfSettings.from_query(dict(request.GET.lists()))
        page = get_what_if_page(scope, settings, with_ablation=request.GET.get("ablate") == "1")
    except NothingToReplayError as error:
        raise Http404(str(error)) from None
    return render_page(request, "what_if/show.html", {"page": page, "permalink": request.get_full_path()}, part="found")


@require_roles(change=Role.VIEWER)
@require_POST
def retry(request: HttpRequest) -> HttpResponse:
    """Delete the failed replays and redirect to the page, which starts them again.

    The URL has the parameters of the page (POST /what-if/again/?…).
    """
    try:
        delete_failed_replays(ReplayScope.from_query(request.GET), WhatIfSettings.from_query(dict(request.GET.lists())))
    except NothingToReplayError as error:
        raise Http404(str(error)) from None
    return redirect(f"{reverse('what-if')}?{request.GET.urlencode()}")
