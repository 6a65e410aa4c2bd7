"""View of the decision page, which also launches the missing trials."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from toolbench.lab.models import Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.decide.more_trials import get_missing_trials_plan, launch_missing_trials
from toolbench.lab.results.decide.new_trials import NewTrialsError
from toolbench.lab.results.decide.page import get_decide_page
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import get_records
from toolbench.lab.results.filter_chips import get_filter_chips
from toolbench.lab.results.scopes import DECIDE_SCOPES
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_user, record
from toolbench.web.result_scope import list_page_scopes
from toolbench.web.scatter import build_scatters

MAX_SHOWN_RECORDS = 5


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest) -> HttpResponse:
    """Show the decision for the scope, rule and filter of the URL; on POST, launch the missing trials."""
    if request.method == "POST":
        return _launch_missing(request)
    page = get_decide_page(DecideQuery.from_query(request.GET))
    context: dict[str, object] = {"page": page, "query": page.query, "scatters": build_scatters(page)}
    context |= {
        "offer": get_missing_trials_plan(page),
        "records": get_records(MAX_SHOWN_RECORDS),
        "scope_links": list_page_scopes(page.query, DECIDE_SCOPES, group=""),
        "filter_chips": get_filter_chips(page.query.chosen, scope=page.query.scope, runs=page.query.runs),
    }
    return render_page(request, "decide/show.html", context)


def _launch_missing(request: HttpRequest) -> HttpResponse:
    """Launch the missing trials, or ask for confirmation of paid requests first."""
    query, shown = DecideQuery.from_query(request.POST), request.POST.get("shown", "")
    agreed = parse_whole_number(request.POST.get("agreed", "")) or 0
    try:
        run = launch_missing_trials(query, owner=find_user(request), shown=shown, confirmed_requests=agreed)
    except (NewTrialsError, LaunchError) as refused:
        messages.error(request, f"No trials were launched. {refused}")
    except PaidRequestsUnconfirmedError as needed:
        return render_page(request, "decide/pay.html", {"query": query, "needed": needed, "shown": shown})
    else:
        record(request, Action.LAUNCHED, f"run {run.pk}", reverse("run", args=[run.pk]))
        messages.success(request, _describe_launch(run))
        return redirect("run", run.pk)
    return redirect(f"{reverse('decide')}?{query.query()}")


def _describe_launch(run: Run) -> str:
    trials = f"{run.trial_count:,} new trial{pluralize(run.trial_count)}"
    return f"Run {run.pk} tries {trials}. The decision counts {pluralize(run.trial_count, 'it,them')}."
