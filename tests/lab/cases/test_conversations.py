"""Conversations of the playground that continue a stored trial."""

import json

import pytest
from django.utils import timezone

from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from toolbench.lab.cases.conversations import (
    MessageSettings,
    build_draft_to_send_again,
    build_message_request,
    load_transcript,
    parse_message,
    save_message,
)
from toolbench.lab.cases.drafts import CaseDraft
from toolbench.lab.cases.from_trial import CaseNotCreatedError
from toolbench.lab.models import Case, Model, Trial
from toolbench.lab.results.playground import get_conversation
from toolbench.lab.runs.launch import launch
from toolbench.providers.scripted_server import ScriptedServer, error_reply, text_reply, tool_call_reply

pytestmark = pytest.mark.django_db(transaction=True)
TOOLS = '[{"name": "find", "parameters": {"type": "object"}}]'


@pytest.fixture
def model(scripted: ScriptedServer) -> Model:
    return make_scripted_model(scripted)


def answer_message(model: Model, draft: CaseDraft, settings: MessageSettings | None = None) -> tuple[Case, Trial]:
    """Send the first message of a conversation and run it to its answer."""
    case = save_message(*parse_message(draft, "", None))
    request = build_message_request(case, settings or MessageSettings(model.pk), None)
    assert request is not None
    run = launch(request)
    run_worker_session(model)
    return case, run.trials.get()


def test_build_draft_to_send_again_is_judged_and_keeps_state(model: Model) -> None:
    launch_run(model, scenarios=("happy_path",), trials=1)
    run_worker_session(model)
    draft, settings, note = build_draft_to_send_again(Trial.objects.get().pk, 5)
    assert (settings.model, settings.trials) == (model.pk, 5)
    assert "from trial" in note
    case, trial = answer_message(model, draft)
    assert trial.outcome == "pass"
    assert load_transcript(case.slug, trial.pk).state == {"draft": {"foo": "bar"}}


def test_load_transcript_without_final_answer_keeps_tool_results(scripted: ScriptedServer, model: Model) -> None:
    scripted.set_script(*[tool_call_reply(("find", {}), ("find", {}))] * 2)
    case, trial = answer_message(model, CaseDraft(tools=TOOLS, message="Find it.", turns=2, parallel=True))
    assert trial.end == "MAX_TURNS_EXCEEDED"
    messages = load_transcript(case.slug, trial.pk).messages
    assert [message["role"] for message in messages] == ["user", *["assistant", "tool", "tool"] * 2]
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert calls == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert load_transcript(case.slug, trial.pk).unanswered == ""


def test_build_message_request_sends_history_in_form_of_method(scripted: ScriptedServer, model: Model) -> None:
    scripted.set_script(tool_call_reply(("find", {"what": "x"})), text_reply("Found."), text_reply("Again."))
    case, trial = answer_message(model, CaseDraft(tools=TOOLS, message="Find it."))
    draft = CaseDraft(title=case.title, tools=TOOLS, message="And now?")
    case = save_message(*parse_message(draft, case.slug, trial.pk), slug=case.slug)
    request = build_message_request(case, MessageSettings(model.pk, method="text_json"), trial.pk)
    assert request is not None
    launch(request)
    run_worker_session(model)
    sent = scripted.seen[2].json()["messages"]
    assert "tool" not in [message["role"] for message in sent]
    assert sent[-1]["content"].startswith("And now?")
    assert '"what": "x"' in str(sent)


def test_load_transcript_blank_answer_counts_as_unanswered(scripted: ScriptedServer, model: Model) -> None:
    scripted.set_script(text_reply(""))
    case, trial = answer_message(model, CaseDraft(tools=TOOLS, message="Find it."))
    transcript = load_transcript(case.slug, trial.pk)
    assert (transcript.messages, transcript.unanswered) == ((), "Find it.")


def test_load_transcript_has_further_messages_with_their_answers(scripted: ScriptedServer, model: Model) -> None:
    scripted.set_script(text_reply("One."), tool_call_reply(("find", {})), text_reply("Two."), text_reply("Three."))
    case, trial = answer_message(
        model, CaseDraft(tools=TOOLS, message="First.", further='["Second.", "Third."]', turns=3)
    )
    transcript = load_transcript(case.slug, trial.pk)
    assert [message["role"] for message in transcript.messages] == [
        *("user", "assistant"),
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant"),
    ]
    texts = [message["content"] for message in transcript.messages if message["role"] != "tool"]
    assert texts == ["First.", "One.", "Second.", None, "Two.", "Third.", "Three."]
    assert (transcript.unanswered, transcript.further) == ("", ())
    assert get_conversation(case.slug).draft.further == ""


def test_load_transcript_of_failed_further_message_keeps_it_for_the_form(
    scripted: ScriptedServer, model: Model
) -> None:
    scripted.set_script(text_reply("One."), error_reply(400, "no"))
    case, trial = answer_message(model, CaseDraft(tools=TOOLS, message="First.", further='["Second.", "Third."]'))
    transcript = load_transcript(case.slug, trial.pk)
    assert [message["content"] for message in transcript.messages] == ["First.", "One."]
    assert (transcript.unanswered, transcript.further) == ("Second.", ("Third.",))
    draft = get_conversation(case.slug).draft
    assert (draft.message, json.loads(draft.further)) == ("Second.", ["Third."])


def test_load_transcript_of_removed_bodies_is_refused(scripted: ScriptedServer, model: Model) -> None:
    scripted.set_script(text_reply("One."))
    case, trial = answer_message(model, CaseDraft(tools=TOOLS, message="First."))
    Trial.objects.update(bodies_removed_at=timezone.now(), bodies_rule="Passed trials after 1 day")
    with pytest.raises(CaseNotCreatedError, match="removed by the rule “Passed trials after 1 day”"):
        load_transcript(case.slug, trial.pk)
    assert get_conversation(case.slug).draft.message == "First."


def test_save_message_with_nul_finds_its_unsent_conversation() -> None:
    message = parse_message(CaseDraft(message='[{"role": "user", "content": "a\\u0000b \\ud800"}]'), "", None)
    assert save_message(*message).title == "a\N{SYMBOL FOR NULL}b ?"
    assert save_message(*message) == Case.objects.get()
