"""Views of decision records: list, show, export, and confirm on new trials."""

import json

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.models import DecisionRecord
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.decide.confirmation_run import (
    count_trials_needed,
    get_confirmation,
    launch_confirmation,
    save_confirmation,
)
from toolbench.lab.results.decide.new_trials import NewTrialsError
from toolbench.lab.results.decide.promotion import is_promotable
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import (
    export_record,
    find_leader_row,
    find_record,
    get_records,
    list_record_changes,
    record_to_json,
    save_record,
)
from toolbench.web.downloads import build_file_response, build_table_response
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_user, redirect_refused
from toolbench.web.requests import record as record_action


@require_http_methods(["GET", "HEAD", "POST"])
def list_records(request: HttpRequest) -> HttpResponse:
    """Show the records, newest first; on POST, save the decision that the form describes."""
    if request.method != "POST":
        return render_page(request, "records/list.html", {"records": get_records()})
    title, note = request.POST.get("title", ""), request.POST.get("note", "")
    record = save_record(DecideQuery.from_query(request.POST), owner=find_user(request), title=title, note=note)
    record_action(request, Action.ADDED, f"decision record {record.pk}", reverse("record", args=[record.pk]))
    messages.success(request, "Decision saved. Later trials do not change its figures.")
    return redirect("record", record.pk)


@require_safe
def show(request: HttpRequest, record_id: int) -> HttpResponse:
    """Show a record (GET /decide/records/ID/)."""
    record = _get_record_or_404(record_id)
    context = {
        "record": record,
        "leader": find_leader_row(record),
        "promotable": is_promotable(record),
        "differences": list_record_changes(record),
        "confirmation": get_confirmation(record),
        "trials": count_trials_needed(record),
    }
    return render_page(request, "records/show.html", context)


@require_safe
def export(request: HttpRequest, record_id: int, file_format: str) -> HttpResponse:
    """Return the whole record as JSON, or its evidence as CSV or Markdown."""
    record = _get_record_or_404(record_id)
    name = f"toolbench-decision-{record.pk}"
    if file_format != "json":
        return build_table_response(export_record(record), file_format, name=name)
    text = json.dumps(record_to_json(record), indent=1, ensure_ascii=False)
    return build_file_response(text, "application/json", name=f"{name}.json")


@require_POST
def act(request: HttpRequest, record_id: int) -> HttpResponse:
    """Launch the confirmation run, or save its result. Paid requests must be confirmed first."""
    record = _get_record_or_404(record_id)
    url = reverse("record", args=[record.pk])
    try:
        sentence = _run_action(record, request.POST, find_user(request))
        record_action(request, Action.CHANGED, f"decision record {record.pk}: {sentence}", url)
        messages.success(request, sentence)
    except (NewTrialsError, LaunchError) as refused:
        return redirect_refused(request, str(refused), url)
    except PaidRequestsUnconfirmedError as needed:
        trials = request.POST.get("trials", "")
        return render_page(request, "records/pay.html", {"record": record, "needed": needed, "trials": trials})
    return redirect("record", record.pk)


def _run_action(record: DecisionRecord, values: QueryDict, owner: User | None) -> str:
    """Save the result of the confirmation run, or launch it, and return a sentence about the action.

    Raises:
        NewTrialsError: the action is not possible.
        LaunchError: the run cannot be launched.
        PaidRequestsUnconfirmedError: paid requests must be confirmed first.
    """
    if values.get("action") == "keep":
        save_confirmation(record)
        return "Confirmation saved. The record reports its result."
    trials, agreed = (parse_whole_number(values.get(name, "")) or 0 for name in ("trials", "agreed"))
    run = launch_confirmation(record, owner=owner, trials=trials, confirmed_requests=agreed)
    return f"Run {run.pk} tries the leader on new trials; only its result will be reported."


def _get_record_or_404(record_id: int) -> DecisionRecord:
    record = find_record(record_id)
    if record is None:
        raise Http404(f"There is no decision record {record_id}.")
    return record
