from dataclasses import replace

import pytest

from tests.lab.scripted_runs import answer_correctly, launch_run, make_scripted_model, run_worker_session
from toolbench.lab.models import Model, Provider, Trial
from toolbench.lab.worker.local_servers import register_local_server
from toolbench.lab.worker.rendered_prompt import PROMPT_TIMEOUT_SECONDS
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    completion_reply,
    error_reply,
    json_reply,
    text_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)


def run_local_trial(prompt: str, prompt_without_tools: str, *, delay: float = 0.0, answer_text: str = "") -> Trial:
    """Run a trial of a local model whose server renders these prompts.

    Args:
        prompt: rendered prompt of a request with tools; "" if the server cannot render prompts.
        prompt_without_tools: the same without tools.
        delay: seconds until the server answers with a prompt.
        answer_text: answer of the model; "" for correct tool calls.
    """

    def play(seen: ReceivedRequest) -> ScriptedReply:
        if not seen.path.endswith("/apply-template"):
            return text_reply(answer_text) if answer_text else answer_correctly(seen)
        rendered = prompt if "tools" in seen.json() else prompt_without_tools
        answer = json_reply({"prompt": rendered}) if rendered else error_reply(404)
        return replace(answer, delay=delay)

    with ScriptedServer(play) as server:
        register_local_server("here", {"url": server.base_url})
        provider = Provider.objects.create(name="Here", kind="local", service="here")
        model = Model.objects.create(provider=provider, name="tiny")
        run = launch_run(model, trials=1)
        assert run_worker_session(model) == 1
    return run.trials.get()


def test_rendered_prompt_without_tools_marks_tools_dropped() -> None:
    trial = run_local_trial("user: hello \ud83d", "user: hello \ud83d")
    assert trial.tools_dropped
    assert (trial.outcome, trial.failure_class) == ("pass", "")
    assert bytes(trial.rendered_prompt or b"").decode("utf-8", "surrogatepass") == "user: hello \ud83d"
    assert trial.requests == 3  # rendering the prompt is not counted as a request


def test_rendered_prompt_with_tools_marks_nothing_dropped() -> None:
    trial = run_local_trial("tools: state_get\nuser: hello", "user: hello")
    assert not trial.tools_dropped
    assert b"state_get" in bytes(trial.rendered_prompt or b"")


def test_rendered_prompt_unsupported_by_server_is_null() -> None:
    trial = run_local_trial("", "")
    assert (trial.rendered_prompt, trial.tools_dropped, trial.outcome) == (None, False, "pass")


def test_rendered_prompt_of_slow_server_is_null() -> None:
    trial = run_local_trial("user: hello", "user: hello", delay=PROMPT_TIMEOUT_SECONDS + 1)
    assert (trial.rendered_prompt, trial.tools_dropped, trial.outcome) == (None, False, "pass")


def test_rendered_prompt_without_tools_explains_failed_trial() -> None:
    trial = run_local_trial("user: hello", "user: hello", answer_text="I cannot.")
    assert (trial.outcome, trial.failure_class) == ("fail", "tools_dropped")
    assert trial.sentence.startswith("Turn 1: the server's chat template dropped the tools")
    assert trial.first_bad_ordinal is not None


def test_rendered_prompt_of_template_method_is_the_sent_prompt() -> None:
    with ScriptedServer(lambda seen: completion_reply("Done.")) as provider:
        model = make_scripted_model(provider)
        run = launch_run(model, trials=1, methods=("template",))
        assert run_worker_session(model) == 1
    trial = run.trials.get()
    sent = provider.seen[0].json()["prompt"]
    assert provider.seen[0].path == "/v1/completions"
    assert bytes(trial.rendered_prompt or b"").decode() == sent
    assert sent.endswith("<|im_start|>assistant\n")
    assert trial.requests == len(provider.seen)
