"""Drafts of test cases from built-in scenarios, through form, files and a run."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from tests.lab.scripted_runs import make_scripted_model, run_worker_session
from tests.lab.simulated_runs import get_simulated_model, serve_simulated_models
from toolbench.evals import scenarios
from toolbench.evals.user_cases.copying import copy_scenario, is_copyable
from toolbench.lab.cases.drafts import CaseDraft, DraftError, build_draft, parse_draft
from toolbench.lab.cases.edit import add_case, build_run_request
from toolbench.lab.cases.files import import_cases, render_cases
from toolbench.lab.cases.from_scenario import build_draft_from_scenario
from toolbench.lab.cases.from_trial import CaseNotCreatedError
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.replays.rejudge import rejudge_trials
from toolbench.lab.replays.stored_trials import list_differences, replay_trials
from toolbench.lab.runs.launch import launch
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)

COPIED = [scenario.slug for scenario in scenarios.list_scenarios() if is_copyable(scenario)]
OPTIONS = CaseDraft(
    tools='[{"name": "f"}]',
    message="Hi",
    expect='{"checks": [{"together": 2}]}',
    further="- And then?\n- Thanks.",
    group="billing",
    behaviour="id_left_out",
    workspace="id: w1\nwritable: foo",
    settings="max_tokens: 64",
)


@pytest.mark.parametrize("slug", COPIED)
@pytest.mark.parametrize("seed", ["", "12"])
def test_build_draft_from_scenario_parses_to_copied_scenario(slug: str, seed: str) -> None:
    draft, note = build_draft_from_scenario(slug, seed)
    scenario = scenarios.lookup_scenario(slug)
    instance = scenario.draw_instance(int(seed or 0), kind="drawn" if seed else "parity")
    assert parse_draft(draft) == (f"Copy of {slug}", copy_scenario(scenario, instance))
    assert slug in note


def test_build_draft_from_scenario_of_earlier_version_differs() -> None:
    newest, earlier = (build_draft_from_scenario("happy_path", "5", version)[0] for version in ("", "1"))
    assert newest.system != earlier.system


@pytest.mark.parametrize(
    ("slug", "sentence"),
    [("nobody", "There is no built-in scenario nobody."), ("agent_sql", "agent_sql cannot be copied as a test case")],
)
def test_build_draft_from_scenario_not_copyable_raises(slug: str, sentence: str) -> None:
    with pytest.raises(CaseNotCreatedError, match=sentence):
        build_draft_from_scenario(slug)


def test_parse_draft_options_round_trip() -> None:
    _, case = parse_draft(OPTIONS)
    assert case.further == ("And then?", "Thanks.")
    assert (case.workspace, case.settings) == ({"id": "w1", "writable": "foo"}, {"max_tokens": 64})
    assert parse_draft(build_draft("x", case)) == ("x", case)


def test_parse_draft_plain_further_text_is_one_message() -> None:
    _, case = parse_draft(replace(OPTIONS, expect='{"name": "f"}', further="What: about {18}?"))
    assert (case.further, case.turns) == (("What: about {18}?",), None)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("further", "- 1\n- two", "Line 1: A further message must be a text that is not blank."),
        ("further", "[oops", "Line 1"),
        ("group", "Über", "A group must have 1 to 16 lower-case letters, digits and underscores."),
        ("behaviour", "none_such", "behaviour must be one of"),
        ("control", True, "A control expects no call"),
        ("workspace", "w1", "A workspace must be an object with id and writable."),
        ("settings", "max_tokens: 64\ntemperature: 1", "Line 2: There is no setting temperature"),
        ("results", '{"f": {"template": "{1 + 1}"}}', "{1 + 1} cannot be substituted"),
    ],
)
def test_parse_draft_invalid_option_is_reported_at_its_field(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(DraftError) as caught:
        parse_draft(replace(OPTIONS, **{field: value}))
    assert set(caught.value.errors) == {field}
    assert sentence in caught.value.errors[field][0]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["yaml", "jsonl"])
def test_render_cases_and_import_cases_restore_copied_scenarios(kind: str) -> None:
    slugs = [slug for slug in COPIED if not slug.startswith(("tool_count", "long_context"))]  # YAML has a limit
    added = [add_case(*parse_draft(build_draft_from_scenario(slug)[0])) for slug in slugs]
    text = render_cases(kind, private=True)
    assert len(import_cases(text).unchanged) == len(added)
    for case in added:
        case.delete()
    assert len(import_cases(text).new) == len(added)


@pytest.mark.django_db
def test_load_scenario_of_copied_control_keeps_group_and_control() -> None:
    control = parse_draft(replace(build_draft_from_scenario("chat_only")[0], group="billing"))
    scenario = load_scenario(add_case(*control).slug)
    assert (scenario.group, scenario.control) == ("own_billing", True)


@pytest.mark.django_db(transaction=True)
def test_copied_scenarios_pass_replay_and_rejudge_equally() -> None:
    slugs = ["happy_path", "happy_path_parallel", "long_arguments_guard", "recovery_slow", "chat_only", "weather"]
    cases = [add_case(*parse_draft(build_draft_from_scenario(slug, "3")[0])) for slug in slugs]
    with serve_simulated_models():
        model = get_simulated_model("perfect")
        request = RunRequest(models=(model.pk,), scenarios=tuple(case.slug for case in cases), trials=1)
        run = launch(request, confirmed_requests=sys.maxsize)
        run_worker_session(model)
    trials = run.trials.order_by("pk")
    assert {trial.scenario: trial.outcome for trial in trials} == {case.slug: "pass" for case in cases}
    assert not any(map(list_differences, replay_trials(trials.values_list("pk", flat=True))))
    rejudge_trials(trials.values_list("pk", flat=True))
    assert set(run.trials.values_list("outcome", flat=True)) == {"pass"}


@pytest.mark.django_db(transaction=True)
def test_case_with_messages_and_templates_replays_and_rejudges_equally() -> None:
    draft = CaseDraft(
        tools='[{"name": "look"}, {"name": "cancel"}]',
        message="Look at order 17.",
        further='["Cancel it.", "What is its state?"]',
        expect='{"state": {"/orders/17": "cancelled"}, "checks": [{"answer_names": "cancelled"}]}',
        results='{"look": {"template": "{arguments.order} is {state:/orders/17}"}, "cancel": {"template": '
        '{"was": "{state:/gone}"}, "set": {"/tried": true}, "fault": {"kind": "busy"}}}',
        start='{"orders": {"17": "cancelled"}}',
    )

    def play(seen: ReceivedRequest) -> ScriptedReply:
        last_message = seen.json()["messages"][-1]
        if last_message["role"] == "tool":
            return text_reply(f"It says {last_message['content']}")
        calls = {"Look at order 17.": "look", "Cancel it.": "cancel", "What is its state?": "look"}
        return tool_call_reply((calls[last_message["content"]], {"order": 17}))

    with ScriptedServer(play) as provider:
        model = make_scripted_model(provider)
        run = launch(
            build_run_request((add_case(*parse_draft(draft)).slug,), model.pk, 1), confirmed_requests=sys.maxsize
        )
        run_worker_session(model)
    trial = run.trials.get()
    sent = [message["content"] for message in provider.seen[-1].json()["messages"] if message["role"] == "tool"]
    assert "17 is cancelled" in sent[0]
    assert "SERVICE_BUSY" in sent[1]
    assert not any(map(list_differences, replay_trials([trial.pk])))
    before = (trial.outcome, trial.failure_class, trial.verdict)
    rejudge_trials([trial.pk])
    trial.refresh_from_db()
    assert (trial.outcome, trial.failure_class, trial.verdict) == before
