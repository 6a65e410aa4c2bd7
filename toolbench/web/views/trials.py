"""Trials: the list with its filter in the address, and one trial step by step."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.models import Trial
from toolbench.lab.results.trial.annotate import annotate
from toolbench.lab.results.trial.diff_page import get_diff_lane
from toolbench.lab.results.trial.filter import OUTCOMES, SORTS, TrialFilter
from toolbench.lab.results.trial.index import get_trials
from toolbench.lab.results.trial.page import get_trace
from toolbench.lab.results.trial.page_query import TrialAddress
from toolbench.lab.results.trial.text_call_causes import get_decisive_cause, get_trial_causes
from toolbench.lab.whole_numbers import whole_number
from toolbench.web.rendering import page, wants_part
from toolbench.web.safe_redirect import local_path

OF_RUN = {"scenario", "failure_class", "cause", "prompt"}  # selects that only a run's own values can fill
SHOWN = {"outcome", "sort", "search", *OF_RUN}


@require_safe
def list(request: HttpRequest) -> HttpResponse:
    asked = TrialFilter.from_query(request.GET)
    found = get_trials(asked, whole_number(request.GET.get("page", "")) or 1)
    shown = SHOWN if asked.run else SHOWN - OF_RUN
    context = {"page": found, "query": asked.query(), "kept": asked.hidden_fields(shown)}
    context |= {"outcomes": tuple(OUTCOMES), "sorts": SORTS, "sort_words": SORTS[asked.sort]}
    context |= {"previous": found.page - 1, "following": found.page + 1}
    return page(request, "trials/list.html", context)


@require_safe
def show(request: HttpRequest, trial_id: int) -> HttpResponse:
    here = TrialAddress.from_query(request.GET)
    try:
        trace = get_trace(trial_id, here.filter, here.step)
    except Trial.DoesNotExist:
        raise Http404(f"There is no trial {trial_id}; its run may have been deleted.") from None
    lane = get_diff_lane(trace.trial, beside=here.beside, level=here.level)
    context = {"trace": trace, "here": here, "lane": lane, "permalink": request.get_full_path()}
    context |= {"causes": get_trial_causes(trace), "cause": get_decisive_cause(trace.trial)}
    answer = page(request, "trials/show.html", context, part="steps")
    if wants_part(request) and trace.trial.state == Trial.State.DONE:
        answer.headers["HX-Refresh"] = "true"  # its verdict stands above the steps
    return answer


@require_POST
def note(request: HttpRequest, trial_id: int) -> HttpResponse:
    """Saves a label and a note, then shows the same step again."""
    if not annotate(trial_id, label=request.POST.get("label", ""), note=request.POST.get("note", "")):
        raise Http404(f"There is no trial {trial_id}; nothing was saved.")
    messages.success(request, "Saved.")
    return HttpResponseRedirect(local_path(request.POST.get("next", ""), reverse("trial", args=[trial_id])))
