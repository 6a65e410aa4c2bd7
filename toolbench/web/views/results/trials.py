"""Views of trials: the list with its filter, one trial with its steps, human verdicts and notes."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import Trial
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.trial.annotate import annotate
from toolbench.lab.results.trial.human_verdicts import save_human_verdict
from toolbench.lab.results.trial.text_call_causes import get_decisive_cause
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.results.trial_list.index import get_trials
from toolbench.lab.results.trial_list.query_text import FIELDS
from toolbench.lab.results.trial_list.scopes import SCOPE_FIELDS, clear_filter, is_narrowed
from toolbench.lab.results.trial_list.sort_columns import SORTS
from toolbench.lab.results.trial_list.table import (
    CALL_COLUMNS,
    TRIAL_COLUMNS,
    choose_trial_columns,
    export_trial_list,
    list_cells,
    list_heads,
)
from toolbench.web.downloads import build_table_response
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, choose_local_path, find_user, record, redirect_refused
from toolbench.web.result_scope import get_chips_of_query, link_other_scopes, list_trial_scopes
from toolbench.web.trial_context import get_trial_context, refresh_when_done

FORM_FIELDS = {"search", "sort", "model", "profile", "strategy", "scenario"}  # visible fields of the filter's form


@require_safe
def list_trials(request: HttpRequest) -> HttpResponse:
    """Show the trials that match the filter of the URL."""
    trial_filter = TrialFilter.from_query(request.GET)
    columns = choose_trial_columns(trial_filter.layout.trials)
    needs_call_names = any(column.name in CALL_COLUMNS for column in columns)
    page = get_trials(
        trial_filter, parse_whole_number(request.GET.get("page", "")) or 1, needs_call_names=needs_call_names
    )
    context = _get_list_context(request, trial_filter) | {"columns": columns}
    context |= {"column_heads": list_heads(columns, trial_filter), "all_columns": tuple(TRIAL_COLUMNS.values())}
    rows = [(row, list_cells(row, columns)) for row in page.rows]
    context |= {"other_scopes": () if rows else link_other_scopes(trial_filter)}
    return render_page(request, "trials/list.html", {**context, "page": page, "rows": rows})


def _get_list_context(request: HttpRequest, trial_filter: TrialFilter) -> dict[str, object]:
    """Return the context of the filter's form and of the links that remove a field."""
    hidden_fields = trial_filter.get_hidden_fields(FORM_FIELDS)
    return {
        "query": trial_filter.query(),
        "hidden_fields": hidden_fields,
        "fields": FIELDS,
        "filter_chips": get_chips_of_query(request.GET),
        "sort_label": SORTS[trial_filter.sort],
        "removals": {name: trial_filter.query(**{name: ""}) for name in hidden_fields if name not in SCOPE_FIELDS},
        "scope_links": list_trial_scopes(trial_filter),
        "is_narrowed": is_narrowed(trial_filter),
        "cleared_url": f"{reverse('trials')}?{clear_filter(trial_filter).query()}".removesuffix("?"),
    }


@require_safe
def export(request: HttpRequest, file_format: str) -> HttpResponse:
    """Return the trials of the filter of the URL as a file (GET /trials/export.csv, .json or .jsonl)."""
    table = export_trial_list(TrialFilter.from_query(request.GET))
    return build_table_response(table, file_format, name="toolbench-trials")


@require_safe
def show(request: HttpRequest, trial_id: int) -> HttpResponse:
    """Show a trial (GET /trials/ID/), or only its steps for htmx.

    If the trial has ended, htmx then loads the whole page.
    """
    try:
        page, context = get_trial_context(request, trial_id)
    except Trial.DoesNotExist:
        raise Http404(f"There is no trial {trial_id}; its run may have been deleted.") from None
    context |= {"permalink": request.get_full_path(), "decisive_cause": get_decisive_cause(page.trial)}
    response = render_page(request, "trials/show.html", context, part="steps")
    return refresh_when_done(request, response, is_done=page.trial.state == Trial.State.DONE)


@require_POST
def save_verdict(request: HttpRequest, trial_id: int) -> HttpResponse:
    """Save a human verdict beside that of the judge; redirect to the path in `next`, or else to the trial."""
    url = reverse("trial", args=[trial_id])
    next_url = choose_local_path(request.POST.get("next", ""), url)
    verdict, reason = request.POST.get("verdict", ""), request.POST.get("reason", "")
    try:
        save_human_verdict(trial_id, find_user(request), verdict=verdict, reason=reason)
        record(request, Action.CHANGED, f"human verdict on trial {trial_id}", url)
        messages.success(request, "Verdict saved. The judge's verdict and all counts stay as they are.")
    except Trial.DoesNotExist:
        raise Http404(f"There is no trial {trial_id}; nothing was saved.") from None
    except InvalidFieldsError as error:
        return redirect_refused(request, f"Nothing was saved. {error}", next_url)
    return HttpResponseRedirect(next_url)


@require_POST
def save_note(request: HttpRequest, trial_id: int) -> HttpResponse:
    """Save the label and the note of a trial; redirect to the path in `next`, or else to the trial."""
    url = reverse("trial", args=[trial_id])
    next_url = choose_local_path(request.POST.get("next", ""), url)
    label, note = (request.POST.get(name, "") for name in ("label", "note"))
    try:
        if not annotate(trial_id, label=label, note=note, read_texts=_find_shown_texts(request)):
            raise Http404(f"There is no trial {trial_id}; nothing was saved.")
    except InvalidFieldsError as error:
        context = {"trial": Trial.objects.get(pk=trial_id), "label": label, "note": note, "error": error}
        return render_page(request, "trials/note.html", context | {"permalink": next_url}, status=422)
    record(request, Action.CHANGED, f"note of trial {trial_id}", url)
    messages.success(request, "Saved.")
    return HttpResponseRedirect(next_url)


def _find_shown_texts(request: HttpRequest) -> tuple[str, str] | None:
    """Return the label and the note that the form showed when it was opened; None if the form lacks them."""
    label, note = (request.POST.get(name) for name in ("read_label", "read_note"))
    return None if label is None or note is None else (label, note)
