"""Views of drafts of test cases from recorded traffic: list, import, accept and reject."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.interchange.traffic.review import get_draft_page
from toolbench.lab.query_params import parse_whole_number
from toolbench.web.forms.case_sources import DraftReviewError, DraftReviewForm, TrafficForm
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, record, redirect_refused


@require_safe
def list_drafts(request: HttpRequest) -> HttpResponse:
    """Show a page of the drafts in ?state=, by default the open ones (GET /cases/drafts/?state=&page=)."""
    page = get_draft_page(request.GET.get("state", ""), parse_whole_number(request.GET.get("page", "")) or 1)
    return render_page(request, "cases/drafts.html", {"page": page, "form": TrafficForm(), "result": None})


@require_POST
def upload(request: HttpRequest) -> HttpResponse:
    """Import a file of traffic and show how many of its records became drafts."""
    form = TrafficForm(request.POST, request.FILES)
    result = form.save()
    if result:
        record(request, Action.IMPORTED, f"recorded traffic: {result.sentence}", reverse("case-drafts"))
    context = {"page": get_draft_page("", 1), "form": form, "result": result}
    return render_page(request, "cases/drafts.html", context, status=200 if result else 422)


@require_POST
def review(request: HttpRequest) -> HttpResponse:
    """Accept or reject the chosen drafts, or all open ones."""
    try:
        sentence = DraftReviewForm(request.POST).save(request.POST.getlist("draft"))
    except DraftReviewError as error:
        page = parse_whole_number(request.POST.get("page", "")) or 1
        return redirect_refused(request, f"Nothing was changed. {error}", f"{reverse('case-drafts')}?page={page}")
    record(request, Action.CHANGED, f"drafts from traffic: {sentence}", reverse("case-drafts"))
    messages.success(request, sentence)
    return redirect("case-drafts")
