"""Test cases of a user: versions, runs and verdicts, and what remains after an edit or a deletion."""

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import connections, transaction

from tests.lab.scripted_runs import make_scripted_model, run_worker_session
from tests.lab.simulated_runs import get_simulated_model, serve_simulated_models
from tests.locks import is_other_connection_blocked
from tests.wait import wait_until
from toolbench.evals.user_cases.definition import render_case
from toolbench.lab.cases.drafts import CaseDraft, parse_draft
from toolbench.lab.cases.edit import (
    DRAFT_SET_NAME,
    NewCaseOptions,
    UnknownCaseError,
    add_case,
    build_run_request,
    build_slug,
    delete_case,
    edit_case,
    get_case,
)
from toolbench.lab.cases.example import EXAMPLE_DRAFT
from toolbench.lab.cases.from_trial import build_draft_from_trial
from toolbench.lab.cases.pages import get_case_page
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.interchange.bundled_cases import BundledCase, create_cases
from toolbench.lab.models import Case, CaseSet, Model, Run, Trial
from toolbench.lab.planning.launch_form import get_launch_choices, list_choices
from toolbench.lab.replays.rejudge import rejudge_trials
from toolbench.lab.replays.stored_trials import list_differences, replay_trials
from toolbench.lab.runs import control
from toolbench.lab.runs.launch import launch
from toolbench.lab.runs.repeat import resend_trial
from toolbench.lab.scenarios.catalogue import find_private, find_scenarios, load_scenario
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)
from toolbench.providers.simulated.seeded_random import build_random

PARAMETERS = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "reason": {"type": "string"}},
    "required": ["order"],
}
TOOL = {"type": "function", "function": {"name": "cancel_order", "description": "", "parameters": PARAMETERS}}
DRAFT = CaseDraft(
    tools=json.dumps([TOOL], indent=2),
    message="Cancel order 17, it is late.",
    expect='{"name": "cancel_order", "arguments": {"order": "17", "reason": {"$any_of": ["late"]}}}',
)


def saved(draft: CaseDraft = DRAFT) -> Case:
    return add_case(*parse_draft(draft))


def tried(case: Case, model: Model, trials: int = 4) -> Run:
    run = launch(build_run_request((case.slug,), model.pk, trials), confirmed_requests=sys.maxsize)
    run_worker_session(model)
    run.refresh_from_db()
    return run


def answering(**arguments: Any) -> Any:
    return lambda seen: tool_call_reply(("cancel_order", arguments))


@pytest.mark.django_db
def test_add_case_equal_long_titles_get_numbered_slugs() -> None:
    slugs = [saved(replace(DRAFT, title="cancel_order: Cancel order 17, it is late; please")).slug for _ in range(3)]
    assert slugs[1:] == [f"{slugs[0][:43]}-{number}" for number in (2, 3)]


def save_in_bundle() -> str:
    """Save the case of DRAFT as an import of a bundle does, and return its slug."""
    title, definition = parse_draft(DRAFT)
    create_cases([BundledCase(build_slug(title), 1, title, "own", False, render_case(definition))], [])
    return build_slug(title)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("save_first", [lambda: saved().slug, save_in_bundle])
def test_add_case_at_the_same_time_gets_another_slug(save_first: Callable[[], str]) -> None:
    def save_second() -> str:
        try:
            return saved().slug
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first = save_first()
            second = pool.submit(save_second)
            wait_until(is_other_connection_blocked)
        assert second.result(timeout=30) == f"{first}-2"


@pytest.mark.django_db
def test_add_case_is_private_and_listed_among_scenarios() -> None:
    case = saved()
    assert find_private(["happy_path", case.slug, "none"]) == {case.slug, "none"}
    assert case.slug in [choice.value for choice in list_choices(get_launch_choices().scenarios)]
    assert list(find_scenarios(["happy_path", case.slug, "none"])) == ["happy_path", case.slug]
    assert saved().slug == f"{case.slug}-2"


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["BFCL from bundles, public", "BFCL simple_python", DRAFT_SET_NAME])
def test_add_case_refuses_sets_that_are_not_for_user_cases(name: str) -> None:
    CaseSet.objects.create(name="BFCL from bundles, public", kind=CaseSet.Kind.BFCL)
    with pytest.raises(InvalidFieldsError) as refused:
        add_case(*parse_draft(DRAFT), NewCaseOptions(set=name))
    assert set(refused.value.errors) == {"set"}
    assert (Case.objects.count(), CaseSet.objects.count()) == (0, 1)


@pytest.mark.django_db
def test_edit_case_adds_version_only_if_definition_changed() -> None:
    case = saved()
    assert edit_case(case.slug, "Another name", parse_draft(DRAFT)[1]).current == 1
    _, changed_case = parse_draft(replace(DRAFT, message="Cancel order 18."))
    assert edit_case(case.slug, "Another name", changed_case).current == 2
    assert load_scenario(case.slug, 1).draw_instance(0).user_text == DRAFT.message
    assert load_scenario(case.slug).draw_instance(0).user_text == "Cancel order 18."


@pytest.mark.django_db(transaction=True)
def test_get_case_page_shows_k_of_n_and_worst_argument_after_rejudging() -> None:
    def play(seen: ReceivedRequest) -> ScriptedReply:
        place = len(provider.seen)
        return tool_call_reply(("cancel_order", {"order": "71" if place % 4 else "17", "reason": "late"}))

    with ScriptedServer(play) as provider:
        model = make_scripted_model(provider)
        case = saved()
        tried(case, model, trials=4)
        (case_run,) = get_case_page(case.slug).runs
    assert (case_run.answered.k, case_run.answered.n) == (1, 4)
    assert case_run.worst_argument is not None
    assert (case_run.worst_argument.name, case_run.worst_argument.count) == ("cancel_order $.order", 3)
    assert case_run.worst_argument.detail == '$.order: "71" instead of "17"'
    assert len(provider.seen) == 4
    changed_draft = parse_draft(
        replace(DRAFT, expect='{"name": "cancel_order", "arguments": {"order": "71", "reason": "late"}}')
    )
    edit_case(case.slug, *changed_draft)
    rejudge_trials(case_run.run.trials.values_list("pk", flat=True))
    (again,) = get_case_page(case.slug).runs
    assert (case_run.judged_version, again.judged_version, again.answered.k) == (1, 2, 3)
    assert not any(
        map(list_differences, replay_trials(case_run.run.trials.values_list("pk", flat=True)))
    )  # replays use the current version


@pytest.mark.django_db(transaction=True)
def test_case_run_with_persona_fails_at_its_true_rate() -> None:
    with serve_simulated_models():
        model = get_simulated_model("wrong-value")
        case = saved(replace(DRAFT, expect='{"name": "cancel_order", "arguments": {"order": "17"}}'))
        run = launch(replace(build_run_request((case.slug,), model.pk, 20), seed=7), confirmed_requests=sys.maxsize)
        run_worker_session(model)
        run.refresh_from_db()
        (case_run,) = get_case_page(case.slug).runs
    seeds = run.trials.values_list("seed", flat=True)
    wrong = sum(build_random(seed, "wrong-value", "drift").random() < 0.25 for seed in seeds)
    assert (case_run.answered.k, case_run.answered.n) == (20 - wrong, 20)
    assert case_run.worst_argument is not None
    assert (case_run.worst_argument.name, case_run.worst_argument.count) == ("cancel_order $.order", wrong)
    assert case_run.worst_argument.detail == '$.order: "something else" instead of "17"'
    assert run.simulated


@pytest.mark.django_db(transaction=True)
def test_example_draft_passes_and_its_trial_copies_expectation() -> None:
    with serve_simulated_models():
        run = tried(saved(EXAMPLE_DRAFT), get_simulated_model("perfect"), trials=1)
    trial = run.trials.get()
    draft, note = build_draft_from_trial(trial.pk)
    assert trial.outcome == Trial.Outcome.PASS
    assert draft.expect == EXAMPLE_DRAFT.expect
    assert "with its expectation" in note


@pytest.mark.django_db(transaction=True)
def test_repeat_after_case_is_edited_and_deleted_uses_old_version() -> None:
    with ScriptedServer(answering(order="17", reason="late")) as provider:
        model = make_scripted_model(provider)
        case = saved()
        run = tried(case, model, trials=1)
        trial = run.trials.get()
        edit_case(case.slug, "Changed", parse_draft(replace(DRAFT, message="Cancel order 18."))[1])
        delete_case(case.slug)
        again = resend_trial(trial.pk)
        repeated = control.start_repeat(run.pk, owner=None, confirmed_requests=1000)
        run_worker_session(model)
    sent = [seen.body for seen in provider.seen]
    assert len(sent) == 3
    assert len(set(sent)) == 1
    outcomes = Trial.objects.filter(run__in=[again, repeated]).values_list("outcome", "scenario_version", "plan_hash")
    assert set(outcomes) == {("pass", 1, trial.plan_hash)}


@pytest.mark.django_db
def test_delete_case_hides_case_from_scenarios_and_pages() -> None:
    case = saved()
    delete_case(case.slug)
    assert find_scenarios([case.slug]) == {}
    with pytest.raises(UnknownCaseError):
        get_case(case.slug)


@pytest.mark.django_db(transaction=True)
def test_case_expecting_no_call_passes_on_text_but_not_on_503() -> None:
    with ScriptedServer(lambda seen: text_reply("It is cancelled.")) as provider:
        model = make_scripted_model(provider)
        no_call_case = saved(replace(DRAFT, expect='{"no_call": true}'))
        assert tried(no_call_case, model, trials=1).trials.get().outcome == "pass"
        assert tried(saved(), model, trials=1).trials.get().failure_class == "no_tool_calls"
    with ScriptedServer(lambda seen: ScriptedReply(status=503)) as provider:
        model = make_scripted_model(provider, "dead")
        assert tried(no_call_case, model, trials=1).trials.get().outcome == "infra"


@pytest.mark.django_db(transaction=True)
def test_case_expectation_judges_state_left_by_simulated_tools() -> None:
    draft = replace(
        DRAFT,
        expect='{"state": {"/orders/17/status": "cancelled"}, "checks": [{"answer_contains": "done"}]}',
        results='{"cancel_order": {"fixed": {"ok": true}, "set": {"/orders/{order}/status": "cancelled"}}}',
        start='{"orders": {"17": {"status": "open"}}}',
    )

    def play(seen: ReceivedRequest) -> ScriptedReply:
        answered = seen.json()["messages"][-1]["role"] == "tool"
        return text_reply("Done.") if answered else tool_call_reply(("cancel_order", {"order": "17"}))

    with ScriptedServer(play) as provider:
        model = make_scripted_model(provider)
        trial = tried(saved(draft), model, trials=1).trials.get()
    assert (trial.outcome, [check["ok"] for check in trial.verdict["checks"]]) == ("pass", [True, True])
