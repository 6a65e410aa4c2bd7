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


def tried_locally(prompt: str, prompt_without_tools: str, *, delay: float = 0.0, words: str = "") -> Trial:
    """A trial of a local model whose template makes these prompts, `delay` seconds after it was asked; "" for a server
    that cannot show them."""

    def play(seen: ReceivedRequest) -> ScriptedReply:
        if not seen.path.endswith("/apply-template"):
            return text_reply(words) if words else answer_correctly(seen)
        shown = prompt if "tools" in seen.json() else prompt_without_tools
        answer = json_reply({"prompt": shown}) if shown else error_reply(404)
        return replace(answer, delay=delay)

    with ScriptedServer(play) as llama:
        register_local_server("here", {"url": llama.base_url})
        provider = Provider.objects.create(name="Here", kind="local", service="here")
        model = Model.objects.create(provider=provider, name="tiny")
        run = launch_run(model, trials=1)
        assert run_worker_session(model) == 1
    return run.trials.get()


def test_tools_dropped_by_template_are_found_in_rendered_prompt() -> None:
    trial = tried_locally("user: hello \ud83d", "user: hello \ud83d")
    assert trial.tools_dropped
    assert (trial.outcome, trial.failure_class) == ("pass", "")
    assert bytes(trial.rendered_prompt or b"").decode("utf-8", "surrogatepass") == "user: hello \ud83d"
    assert trial.requests == 3  # looking at the prompt is no part of the trial


def test_tools_in_the_prompt_are_not_called_dropped() -> None:
    trial = tried_locally("tools: state_get\nuser: hello", "user: hello")
    assert not trial.tools_dropped
    assert b"state_get" in bytes(trial.rendered_prompt or b"")


def test_a_server_that_cannot_show_the_prompt_is_no_trouble() -> None:
    trial = tried_locally("", "")
    assert (trial.rendered_prompt, trial.tools_dropped, trial.outcome) == (None, False, "pass")


def test_an_end_does_not_wait_for_a_server_that_is_slow_to_show_the_prompt() -> None:
    trial = tried_locally("user: hello", "user: hello", delay=PROMPT_TIMEOUT_SECONDS + 1)
    assert (trial.rendered_prompt, trial.tools_dropped, trial.outcome) == (None, False, "pass")


def test_a_trial_that_fails_without_its_tools_says_so_as_its_cause() -> None:
    trial = tried_locally("user: hello", "user: hello", words="I cannot.")
    assert (trial.outcome, trial.failure_class) == ("fail", "tools_dropped")
    assert trial.sentence.startswith("Turn 1: the server's chat template dropped the tools")
    assert trial.first_bad_ordinal is not None


def test_a_prompt_that_was_sent_is_the_trials_own_whoever_served_it() -> None:
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
