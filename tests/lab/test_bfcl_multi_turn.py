"""A BFCL conversation from import to verdict: several messages, and tools with a state."""

from collections.abc import Callable

import pytest

from tests.lab.scripted_runs import make_scripted_model, run_worker_session
from toolbench.evals.bfcl.multi_turn.cases import iter_multi_turn_cases, parse_golden_turns
from toolbench.lab.cases.bfcl_import import import_bfcl
from toolbench.lab.cases.edit import build_run_request
from toolbench.lab.cases.from_trial import CaseNotCreatedError, build_draft_from_trial
from toolbench.lab.cases.pages import get_case_page
from toolbench.lab.models import Case, Run, Trial
from toolbench.lab.replays.stored_trials import replay_trials
from toolbench.lab.results.trial.page import get_trial_page
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.runs.launch import launch
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)


def _build_player(category: str, *, omits_call: bool) -> Callable[[ReceivedRequest], ScriptedReply]:
    """Return a player that makes the golden calls of the first case, all calls of a message in one answer.

    Args:
        omits_call: omit the last call of the first message.
    """
    case = next(iter_multi_turn_cases([category]))
    turns = list(parse_golden_turns(case))
    turns[0] = turns[0][:-1] if omits_call else turns[0]

    def play(seen: ReceivedRequest) -> ScriptedReply:
        messages = seen.json()["messages"]
        turn_index = sum(message["role"] == "user" for message in messages) - 1
        return (
            tool_call_reply(*turns[turn_index])
            if messages[-1]["role"] == "user" and turns[turn_index]
            else text_reply("Done.")
        )

    return play


def _run_first_case(category: str, *, omits_call: bool = False) -> Run:
    import_bfcl([category], limit=1)
    with ScriptedServer(_build_player(category, omits_call=omits_call)) as provider:
        model = make_scripted_model(provider)
        (slug,) = Case.objects.values_list("slug", flat=True)
        run = launch(build_run_request((slug,), model.pk, 1))
        run_worker_session(model)
    return run


@pytest.mark.django_db(transaction=True)
def test_bfcl_multi_turn_golden_calls_pass_with_complete_trace() -> None:
    trial = Trial.objects.get(run=_run_first_case("multi_turn_miss_func"))

    assert (trial.outcome, trial.sentence) == ("pass", "")
    page = get_trial_page(trial.pk, TrialFilter())
    case = next(iter_multi_turn_cases(["multi_turn_miss_func"]))
    assert [turn.user_message for turn in page.timeline if turn.user_message] == list(case.messages[1:])
    results = [line for turn in page.timeline for line in turn.rows if line.part == "result"]
    assert len(results) == sum(len(turn) for turn in case.answers)
    assert [check.name for check in page.checks][-1] == f"message {len(case.messages)}: state and results"
    assert next(iter(replay_trials([trial.pk]))).columns["outcome"] == "pass"
    with pytest.raises(CaseNotCreatedError, match=f"the user sends {len(case.messages)} messages"):
        build_draft_from_trial(trial.pk)


@pytest.mark.django_db(transaction=True)
def test_bfcl_multi_turn_verdict_names_message_and_differing_state() -> None:
    trial = Trial.objects.get(run=_run_first_case("multi_turn_base", omits_call=True))

    assert (trial.outcome, trial.failure_class) == ("fail", "wrong_state")
    assert "after the user's message 1: GorillaFileSystem.root." in trial.sentence
    assert trial.sentence.endswith("final_report.pdf is missing.")
    page = get_case_page(trial.scenario)
    assert (page.case.set.public, page.case.set.licence) == (True, "Apache 2.0")
    assert "\n\n" in page.draft.message
