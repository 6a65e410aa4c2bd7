"""Hostile input in every part of every address: no server error, and no change."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.page_html import read_html
from tests.recorded_connections import record_connections
from tests.site_addresses import NAMED, build_addresses, make_one_of_everything
from tests.web.html_forms import find_leaks, read_forms
from toolbench.lab.models import Model, Probe, Provider, Run, Trial
from toolbench.lab.results.compare.query import AXES
from toolbench.providers.scripted_server import ScriptedServer, json_reply
from toolbench.web.forms.aliases import AliasForm, PromotionForm
from toolbench.web.forms.launch import PLAN_FIELDS, LaunchForm
from toolbench.web.forms.playground import MessageForm, MessageRunForm
from toolbench.web.forms.providers import ProviderForm
from toolbench.web.forms.schedules import RuleForm, ScheduleForm

pytestmark = pytest.mark.django_db

HOSTILE = {
    "text": "%27%20OR%201%3D1%20--%22%3E%3Cscript%3E%7B%7B7*7%7D%7D%25s%28../%ED%A0%80%FF",
    "nul": "a%00b",
    "minus": "-1",
    "huge": "1" + "0" * 30,
    "beyond every int": "9" * 5000,
    "other digits": quote("٣²"),
    "very long": "[" * 50_000,
}
SHORT_HOSTILE_NAMES = ("text", "nul", "beyond every int")  # the others need 30 s each on two cores
EVERY_HOSTILE = [
    pytest.param(value, id=name, marks=() if name in SHORT_HOSTILE_NAMES else pytest.mark.long)
    for name, value in HOSTILE.items()
]
TRIAL_FILTER: tuple[str, ...] = (
    "run",
    "runs",
    "cell",
    "cells",
    "without",
    "config",
    "scenario",
    "outcome",
    "model",
    "profile",
    "strategy",
    "method",
    "demo",
)
TRIAL_FILTER += (
    "prompt",
    "cause",
    "seen",
    "path",
    "place",
    "scope",
    "cluster",
    "failure_class",
    "signature",
    "label",
    "search",
    "sort",
    "page",
)
CHOOSING = ("model", "profile", "strategy", "scenario", "after", "before", "upto")
TRIAL_FILTER += ("alike", "after", "before", "upto")
COMPARING = tuple(f"{side}{axis}" for side in ("", "a_") for axis in AXES)
COMPARING += ("metric", "group", "kind", "how", "points", "demo")
DECIDING = ("scope", "run", "want", "success", "within", "q", "group", "rows")
PLANNING = tuple(LaunchForm.base_fields)
CONNECTING = tuple(ProviderForm.base_fields)
SCHEDULING = tuple(ScheduleForm.base_fields)
READ = {
    "first": ("look",),  # an earlier version looked for local servers
    "matrix": ("scope", "run", "metric", "target", "q", "group", "prompt", "cell", "view", "sort", "page", *CHOOSING),
    "matrix-export": ("scope", "run", "metric", "target", "q", "group", "prompt", *CHOOSING),
    "search": ("q",),
    "audit": ("person", "page"),
    "retention": ("passed", "failed"),
    "compare": COMPARING,
    "run-new": tuple(sorted(PLAN_FIELDS)),
    "run": ("config", "scenario"),
    "run-missing": ("target", "cell", "chosen"),
    "run-repeat": ("kind",),
    "trials": TRIAL_FILTER,
    "trial": ("step", "view"),
    "failures": ("scope", "run", "look", "by", *CHOOSING),
    "decide": (*DECIDING, *CHOOSING),
    "recommendations": ("scope", "run"),
    "latency": ("scope", "run", "metric", "by", "group", "page", *CHOOSING),
    "latency-chart": ("scope", "run", "metric", "group", "page", *CHOOSING),
    "provider-models": ("q",),
    "models": ("q",),
    "what-if": ("trial", "cell", "run", "strategy", "format", "preset", "without", "ablate"),
    "case-new": ("trial", "q"),
    "playground": ("trial", "case", "example"),
    "case-export": ("private",),
    "case-drafts": ("state", "page"),
    "promote": ("candidate", "record", *DECIDING, *CHOOSING),
    "gateway-trace": ("step", "view"),
    "gateway-traces": ("alias", "before"),
    "imported": ("page",),
    "probe": ("exchange",),
    "policy": ("config", "model", "profile", "strategy", "method", "scenario"),
    "scenario": ("seed",),
    "trend": ("schedule", "measure"),
    "schedule-new": ("run", *sorted(PLAN_FIELDS)),
    "profile-new": ("copy",),
    "model-settings": ("old", "new"),
    "profile": ("old", "new"),
    "preset-new": ("copy",),
    "preset": ("old", "new", "model"),
}
# Parameters read by code that another page tests one by one.
READ_TOGETHER = {
    "compare": tuple(f"b_{axis}" for axis in AXES),
    "run-new": PLANNING,
    "trial": TRIAL_FILTER,
    "recommendations": DECIDING,
    "provider-new": CONNECTING,
}
ACTING = ("label", "cell", "count", "request_cap", "token_cap")
SENT = {
    "run-new": PLANNING,
    "run-act": ("action", *ACTING),
    "run-missing": ("target", "cell", "chosen", "shown", "agreed"),
    "trial-note": ("label", "note", "next", "read_label", "read_note"),
    "trial-verdict": ("verdict", "reason", "next"),
    "provider-new": CONNECTING,
    "provider": ("list", *CONNECTING),
    "provider-models": ("q", "name", "more"),
    "first": ("look",),
    "view-save": ("name", "address", "shared"),
    "view-delete": ("address",),
    "theme": ("theme", "next"),
    "tokens": ("name", "scopes", "days"),
    "links": ("kind", "target", "query", "days"),
    "records": (*DECIDING, "title", "note"),
    "record-act": ("action", "trials"),
    "case-set": ("public",),
    "playground": ("key", *MessageForm.base_fields, *MessageRunForm.base_fields),
    "case-mcp": ("server", "authorization", "choose", "tool"),
    "case-drafts-review": ("draft", "decision", "set", "all", "page"),
    "alias-new": tuple(AliasForm.base_fields),
    "alias": tuple(AliasForm.base_fields),
    "alias-roll-back": ("binding",),
    "promote": tuple(PromotionForm.base_fields),
    "schedule": SCHEDULING,
    "schedule-act": ("action", "baseline"),
    "rule-new": tuple(RuleForm.base_fields),
    "rule-act": ("action",),
}
ACTIONS = ("cancel", "pause", "resume", "retry", "repeat", "raise", "add", "label", "explode")
NOBODY = "http://127.0.0.1:9"  # nothing listens there


@pytest.fixture
def trial() -> Trial:
    """A finished trial with a step, and one row of everything else that has a page."""
    return make_one_of_everything(NOBODY)


@pytest.fixture
def visitor(owner_client: Client) -> Client:
    """Client of the owner that returns the error page instead of raising, as the server does."""
    owner_client.raise_request_exception = False
    return owner_client


@pytest.fixture
def addresses(trial: Trial) -> dict[str, str]:
    """Address of every page about the rows of `trial`, by page name."""
    return build_addresses(trial)


def iterate_queries(value: str, singly: Iterable[str], together: Iterable[str] = ()) -> Iterator[str]:
    """Yield the value in each field alone, then twice in all fields, then under an unknown name."""
    yield from (f"{field}={value}" for field in singly)
    yield "&".join(f"{field}={value}" for field in (*singly, *together) * 2)
    yield f"{value}={value}"


def assert_no_error(answer: Any, request: str) -> None:
    assert answer.status_code < 500, f"{answer.status_code} for {request[:200]}"
    assert not b"".join(answer).startswith(b"Traceback"), request[:200]


def test_field_tables_name_only_existing_pages() -> None:
    assert READ.keys() | READ_TOGETHER.keys() | SENT.keys() <= NAMED.keys()


@pytest.mark.parametrize("value", EVERY_HOSTILE)
def test_pages_with_hostile_query_parameters_do_not_fail(
    visitor: Client, addresses: dict[str, str], value: str
) -> None:
    for name, path in addresses.items():
        for query in iterate_queries(value, READ.get(name, ()), READ_TOGETHER.get(name, ())):
            assert_no_error(visitor.get(f"{path}?{query}"), f"{path}?{query}")


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_page_parts_with_hostile_query_parameters_do_not_fail(
    visitor: Client, addresses: dict[str, str], value: str
) -> None:
    for name in ("first", "matrix", "run", "run-new", "trials", "trial", "health"):
        request = f"{addresses[name]}?{'&'.join(f'{field}={value}' for field in READ.get(name, ()))}"
        assert_no_error(visitor.get(request, headers={"HX-Request": "true"}), request)


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_addresses_with_hostile_path_parts_return_404(visitor: Client, trial: Trial, value: str) -> None:
    for place in ("runs/{}/", "runs/{}/act/", "trials/{}/", "trials/{}/note/", "providers/{}/", "providers/{}/models/"):
        status = 405 if value == HOSTILE["huge"] and place.endswith(("act/", "note/")) else 404  # a number is an id
        assert visitor.get("/" + place.format(value)).status_code == status, place
    for place in ("steps/{}/request/", "steps/{}/response.bin", "runs/{}/trials.csv", "decide/records/{}/record.md"):
        assert visitor.get("/" + place.format(value)).status_code == 404, place
    for place in ("scenarios/{}/", "matrix/export.{}", "sign-in/{}/", "static/{}", "{}", "runs/{}/report.zip"):
        assert_no_error(visitor.get("/" + place.format(value)), place)


@pytest.mark.parametrize("value", EVERY_HOSTILE)
def test_forms_with_hostile_fields_do_not_fail_or_lose_rows(
    visitor: Client, trial: Trial, addresses: dict[str, str], value: str
) -> None:
    def send(name: str, form: str) -> None:
        answer = visitor.post(addresses[name], form, content_type="application/x-www-form-urlencoded")
        assert_no_error(answer, f"POST {name} {form}")

    for name, fields in SENT.items():
        for form in iterate_queries(value, fields):
            send(name, form)
    for action in ACTIONS:
        send("run-act", f"action={action}&{'&'.join(f'{field}={value}' for field in ACTING)}")
    assert Run.objects.filter(title="kept", deleted_at=None).exists()
    assert Trial.objects.filter(pk=trial.pk, outcome="fail").exists()


def test_forms_without_csrf_token_return_403_and_change_nothing(owner: User, addresses: dict[str, str]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    counted = (Run.objects.count(), Provider.objects.count(), Model.objects.count())

    for name, path in addresses.items():
        answer = client.post(path, {"action": "delete"})
        assert answer.status_code == 403, name
        assert "Nothing was sent or changed" in read_html(answer), name

    assert (Run.objects.count(), Provider.objects.count(), Model.objects.count()) == counted
    assert not Run.objects.exclude(deleted_at=None).exists()


def test_get_forms_have_no_csrf_token(visitor: Client, addresses: dict[str, str]) -> None:
    found = 0
    for name, path in addresses.items():
        text = b"".join(visitor.get(f"{path}?{'&'.join(f'{field}=1' for field in READ.get(name, ()))}")).decode(
            "latin-1"
        )
        assert find_leaks(text) == [], name
        found += len(read_forms(text))
    assert found > 40  # the form of the theme is on every page


@pytest.fixture
def server(trial: Trial) -> Iterator[ScriptedServer]:
    """Scripted server at the provider's address; it records the requests that arrive."""
    with ScriptedServer(lambda seen: json_reply({"data": [{"id": "m/one"}]})) as running:
        Provider.objects.update(base_url=running.base_url)
        yield running


def test_pages_send_no_request_for_get_or_head(
    visitor: Client, addresses: dict[str, str], server: ScriptedServer
) -> None:
    """Pages connect to no host and queue nothing for a worker."""
    queued = (Trial.objects.count(), Probe.objects.count(), Run.objects.count())
    with record_connections() as made:
        for name, path in addresses.items():
            fields = (*READ.get(name, ()), *READ_TOGETHER.get(name, ()))
            assert_no_error(visitor.get(f"{path}?{'&'.join(f'{field}=1' for field in fields)}"), name)
            assert_no_error(visitor.get(path, headers={"HX-Request": "true"}), name)
            assert_no_error(visitor.head(path), name)
            assert made == [], name
    assert server.seen == []
    assert (Trial.objects.count(), Probe.objects.count(), Run.objects.count()) == queued


def test_record_connections_finds_request_of_models_form(visitor: Client, trial: Trial, server: ScriptedServer) -> None:
    """Show that `test_pages_send_no_request_for_get_or_head` can fail."""
    with record_connections() as made:
        visitor.post(f"/providers/{trial.provider_id}/models/", {"ask": "1"})

    assert [seen.path for seen in server.seen] == ["/v1/models"]
    assert len(made) == 1


@pytest.mark.parametrize("name", ["run-act", "trial-note", "theme", "sign-out"])
def test_actions_opened_by_get_return_405_and_change_nothing(
    visitor: Client, name: str, addresses: dict[str, str]
) -> None:
    answer = visitor.get(addresses[name])

    assert answer.status_code == 405
    assert "nothing was changed" in read_html(answer).lower()
    assert "_auth_user_id" in visitor.session


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_pages_with_unsupported_method_change_nothing(visitor: Client, method: str, addresses: dict[str, str]) -> None:
    for name, path in addresses.items():
        assert_no_error(getattr(visitor, method)(path), f"{method} {name}")
    assert Run.objects.filter(deleted_at=None).count() == 1


def test_pages_without_sign_in_lead_to_sign_in(client: Client, addresses: dict[str, str]) -> None:
    for name in addresses.keys() - {"sign-in", "sign-in-link", "health-live", "shared"}:
        answer = client.get(addresses[name], REMOTE_ADDR="192.0.2.1")
        assert answer.status_code in ((401,) if name == "health-metrics" else (302, 405)), name
        assert answer.headers.get("Location", "/sign-in/").startswith("/sign-in/"), name
