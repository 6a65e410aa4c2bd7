"""Decision records: the list, one record, its exports, and its confirmation on fresh trials."""

import json

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from toolbench.lab.confirmation import ConfirmationNeeded
from toolbench.lab.models import DecisionRecord
from toolbench.lab.planning.run_request import LaunchRefused
from toolbench.lab.results.decide.confirmation_run import confirm, get_confirmation, keep, trials_wanted
from toolbench.lab.results.decide.fresh_trials import Unconfirmable
from toolbench.lab.results.decide.query import DecideQuery
from toolbench.lab.results.decide.records import (
    differences,
    export_record,
    get_record,
    get_records,
    leader_row,
    record_json,
    save_record,
)
from toolbench.lab.whole_numbers import whole_number
from toolbench.web.downloads import as_file, table_file
from toolbench.web.rendering import page
from toolbench.web.request_user import owner_of


@require_http_methods(["GET", "HEAD", "POST"])
def list(request: HttpRequest) -> HttpResponse:
    """GET: every record, newest first. POST: keeps the decision that the sent fields ask for."""
    if request.method != "POST":
        return page(request, "records/list.html", {"records": get_records()})
    typed = request.POST
    query = DecideQuery.from_query(typed)
    record = save_record(query, owner=owner_of(request), title=typed.get("title", ""), note=typed.get("note", ""))
    messages.success(request, "Kept: its figures stay as they are whatever is measured later.")
    return redirect("record", record.pk)


@require_safe
def show(request: HttpRequest, record_id: int) -> HttpResponse:
    """GET /decide/records/ID/"""
    record = _found(record_id)
    context = {
        "record": record,
        "leader": leader_row(record),
        "differences": differences(record),
        "confirmation": get_confirmation(record),
        "trials": trials_wanted(record),
    }
    return page(request, "records/show.html", context)


@require_safe
def export(request: HttpRequest, record_id: int, kind: str) -> HttpResponse:
    """GET …/record.json has the whole record; .csv and .md its evidence as a table."""
    record = _found(record_id)
    name = f"toolbench-decision-{record.pk}"
    if kind != "json":
        return table_file(export_record(record), kind, name=name)
    text = json.dumps(record_json(record), indent=1, ensure_ascii=False)
    return as_file(text, "application/json", name=f"{name}.json")


@require_POST
def act(request: HttpRequest, record_id: int) -> HttpResponse:
    """Asks for the confirmation, or keeps its result. What may have to be paid for is asked about first."""
    record = _found(record_id)
    try:
        messages.success(request, _carry_out(record, request.POST, owner_of(request)))
    except (Unconfirmable, LaunchRefused) as refused:
        messages.error(request, str(refused))
    except ConfirmationNeeded as needed:
        trials = request.POST.get("trials", "")
        return page(request, "records/pay.html", {"record": record, "needed": needed, "trials": trials})
    return redirect("record", record.pk)


def _carry_out(record: DecisionRecord, values: QueryDict, owner: User | None) -> str:
    """What was done."""
    if values.get("action") == "keep":
        keep(record)
        return "Kept: the confirmation is what this record reports."
    trials, agreed = (whole_number(values.get(name, "")) or 0 for name in ("trials", "agreed"))
    run = confirm(record, owner=owner, trials=trials, agreed=agreed)
    return f"Run {run.pk} tries the leader on fresh trials; only its result will be reported."


def _found(record_id: int) -> DecisionRecord:
    record = get_record(record_id)
    if record is None:
        raise Http404(f"There is no decision record {record_id}.")
    return record
