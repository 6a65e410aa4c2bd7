"""Template context of a trial's timeline and views, for the trial page and the playground."""

from django.http import HttpRequest, HttpResponse

from toolbench.lab.results.trial.diff_page import get_diff_page
from toolbench.lab.results.trial.page import TrialPage, get_trial_page
from toolbench.lab.results.trial.page_query import DIFFERENCES, TrialPageQuery
from toolbench.lab.results.trial.text_call_causes import get_text_call_causes
from toolbench.web.rendering import is_part_request


def get_trial_context(request: HttpRequest, trial_id: int) -> tuple[TrialPage, dict[str, object]]:
    """Return the page of a trial, and the context of its timeline and of the view that the URL chooses.

    Raises:
        Trial.DoesNotExist: the trial does not exist, or its run was deleted.
    """
    query = TrialPageQuery.from_query(request.GET)
    page = get_trial_page(trial_id, query.filter, query.step, view=query.shown_view)
    return page, {"trial_page": page, "page_query": query, **_get_view_context(page, query)}


def refresh_when_done(request: HttpRequest, response: HttpResponse, *, is_done: bool) -> HttpResponse:
    """Return the response; if it is a part of a page and `is_done`, make htmx reload the whole page."""
    if is_done and is_part_request(request):
        response.headers["HX-Refresh"] = "true"  # the page shows more than the part, such as the verdict
    return response


def _get_view_context(page: TrialPage, query: TrialPageQuery) -> dict[str, object]:
    """Return the context that only the chosen view needs."""
    if query.shown_view == DIFFERENCES:
        return {"diff": get_diff_page(page.trial, beside=query.beside, level=query.level), "text_call_causes": ()}
    return {"text_call_causes": get_text_call_causes(page)}
