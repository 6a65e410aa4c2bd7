"""A conversation of BFCL through the whole lab: several messages, tools with a state, BFCL's verdict."""

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
from toolbench.lab.results.trial.page import get_trace
from toolbench.lab.results.trial_list.filter import TrialFilter
from toolbench.lab.runs.launch import launch
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    text_reply,
    tool_call_reply,
)


def _plays(category: str, *, breaks: bool) -> Callable[[ReceivedRequest], ScriptedReply]:
    """BFCL's own calls of the first case, all of a message at once; where it `breaks` one is left out of the first
    message."""
    case = next(iter_multi_turn_cases([category]))
    turns = list(parse_golden_turns(case))
    turns[0] = turns[0][:-1] if breaks else turns[0]

    def play(seen: ReceivedRequest) -> ScriptedReply:
        messages = seen.json()["messages"]
        said = sum(message["role"] == "user" for message in messages) - 1
        return tool_call_reply(*turns[said]) if messages[-1]["role"] == "user" and turns[said] else text_reply("Done.")

    return play


def _tried(category: str, *, breaks: bool = False) -> Run:
    import_bfcl([category], limit=1)
    with ScriptedServer(_plays(category, breaks=breaks)) as provider:
        model = make_scripted_model(provider)
        (slug,) = Case.objects.values_list("slug", flat=True)
        run = launch(build_run_request((slug,), model.pk, 1))
        run_worker_session(model)
    return run


@pytest.mark.django_db(transaction=True)
def test_golden_calls_pass_and_the_trace_shows_every_message_and_result() -> None:
    trial = Trial.objects.get(run=_tried("multi_turn_miss_func"))

    assert (trial.outcome, trial.sentence) == ("pass", "")
    trace = get_trace(trial.pk, TrialFilter())
    case = next(iter_multi_turn_cases(["multi_turn_miss_func"]))
    assert [turn.user_message for turn in trace.timeline if turn.user_message] == list(case.messages[1:])
    results = [line for turn in trace.timeline for line in turn.rows if line.part == "result"]
    assert len(results) == sum(len(turn) for turn in case.answers)
    assert [check.name for check in trace.checks][-1] == f"message {len(case.messages)}: state and results"
    assert next(iter(replay_trials([trial.pk]))).columns["outcome"] == "pass"
    with pytest.raises(CaseNotCreatedError, match=f"the user sends {len(case.messages)} messages"):
        build_draft_from_trial(trial.pk)


@pytest.mark.django_db(transaction=True)
def test_bfcl_verdict_names_message_and_part_of_state_that_differs() -> None:
    trial = Trial.objects.get(run=_tried("multi_turn_base", breaks=True))

    assert (trial.outcome, trial.failure_class) == ("fail", "wrong_state")
    assert "after the user's message 1: GorillaFileSystem.root." in trial.sentence
    assert trial.sentence.endswith("final_report.pdf is missing.")
    page = get_case_page(trial.scenario)
    assert (page.case.set.public, page.case.set.licence) == (True, "Apache 2.0")
    assert "\n\n" in page.draft.message
