import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.providers.probing.probe_runs import ProbeFindings, RunProbe, probe_personas, run_probe
from toolbench.engine.capabilities.method_choice import choose_method
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.constraint_checks import check_constraints
from toolbench.providers.probing.prober import Prober
from toolbench.providers.probing.probes import CHECKS, MAX_REQUESTS, TITLES, probe_conformance, probe_first_use
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    chat_reply,
    error_reply,
    json_reply,
    text_reply,
    tool_call_reply,
)

PERSONAS = (
    "perfect",
    "equal-ids",
    "blank-ids",
    "tools-dropped",
    "stream-no-index",
    "key-refused",
    "several-at-once",
    "plain-tools",
)


@pytest.fixture(scope="module")
def personas() -> dict[str, ProbeFindings]:
    return probe_personas(PERSONAS, probe_conformance)


def outcomes(found: ProbeFindings) -> dict[str, str]:
    return {slug: check.outcome for slug, check in found.checks.items()}


def test_every_question_gets_an_answer_and_has_a_title(personas: dict[str, ProbeFindings]) -> None:
    assert all(personas[name].checks.keys() == TITLES.keys() for name in PERSONAS)
    assert len(TITLES) == len(CHECKS)


def test_an_endpoint_that_does_everything_right_passes_what_can_be_told(personas: dict[str, ProbeFindings]) -> None:
    found = personas["perfect"]

    assert {slug for slug, outcome in outcomes(found).items() if outcome == "failed"} == {
        "constraints",  # the simulated server holds nobody to a schema
        "effort",  # nor does it read how hard to think
        "completion",  # and has no raw completion
    }
    assert found.capabilities.supports_parallel_tools is True
    assert found.capabilities.constrained == ()
    assert found.capabilities.ids == "unique"


def test_every_verdict_but_of_what_was_not_asked_names_its_evidence(personas: dict[str, ProbeFindings]) -> None:
    count = len(personas["perfect"].exchanges)
    assert all(len(found.exchanges) <= MAX_REQUESTS for found in personas.values())

    for check in personas["perfect"].checks.values():
        assert check.exchanges
        assert set(check.exchanges) <= set(range(1, count + 1))


def test_dropped_tools_are_found_by_the_endpoints_own_count(personas: dict[str, ProbeFindings]) -> None:
    found = personas["tools-dropped"]

    assert found.checks["dropped_tools"].outcome == "failed"
    assert found.capabilities.tools_field == "dropped"


EQUAL_COUNTS = {"prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45}


def _calls_when(needed: str | None) -> Callable[[ReceivedRequest], ScriptedReply]:
    """An endpoint that leaves tools out of its token count; it calls always, or under one tool_choice only."""

    def play(seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        if not isinstance(body.get("messages"), list):
            return error_reply(400, "messages is no list")
        chosen = body.get("tool_choice")
        chosen = "named" if isinstance(chosen, dict) else chosen
        offered = [tool["function"]["name"] for tool in body.get("tools") or []]
        if body["messages"][-1].get("role") == "tool" or not offered or (needed and chosen != needed):
            return chat_reply({"content": "It gave it back."}, usage=EQUAL_COUNTS)
        call = {"id": "call_1", "type": "function", "function": {"name": offered[0], "arguments": '{"value": "x"}'}}
        return chat_reply({"content": None, "tool_calls": [call]}, finish_reason="tool_calls", usage=EQUAL_COUNTS)

    return play


@pytest.mark.parametrize("probe", [probe_first_use, probe_conformance])
@pytest.mark.parametrize("needed", [None, "required"])
def test_probe_call_that_came_back_outweighs_equal_counts(probe: RunProbe, needed: str | None) -> None:
    with ScriptedServer(_calls_when(needed)) as provider:
        known = run_probe(provider.endpoint(), probe).capabilities

    assert (known.supports_tool_use, known.tools_field) == (True, "accepted")
    assert choose_method(("native", "text_json"), known).method == "native"


def test_probe_call_under_a_named_choice_outweighs_equal_counts() -> None:
    with ScriptedServer(_calls_when("named")) as provider:
        found = run_probe(provider.endpoint(), probe_conformance)

    assert found.checks["tools"].learned["tools_field"] == "dropped"
    assert (found.capabilities.supports_tool_use, found.capabilities.tools_field) == (True, "accepted")


def test_ids_that_are_missing_or_equal_are_found(personas: dict[str, ProbeFindings]) -> None:
    assert personas["blank-ids"].capabilities.ids == "missing"
    assert personas["equal-ids"].capabilities.ids == "repeated"


def test_an_odd_stream_is_told_and_its_calls_count(personas: dict[str, ProbeFindings]) -> None:
    found = personas["stream-no-index"]

    assert found.checks["stream"].outcome == "failed"
    assert found.capabilities.supports_stream_tools is True


def test_names_number_and_keywords_of_tools_that_are_refused_are_found(personas: dict[str, ProbeFindings]) -> None:
    found, anything = personas["plain-tools"].capabilities, personas["perfect"].capabilities

    assert found.name_pattern == "^[a-zA-Z0-9_-]{1,64}$"
    assert found.max_tools == 100
    assert found.schema_dialect == ("oneOf", "patternProperties", "not")
    assert (anything.name_pattern, anything.max_tools, anything.schema_dialect) == (None, None, ())


def test_who_cannot_be_asked_is_asked_once(personas: dict[str, ProbeFindings]) -> None:
    found = personas["key-refused"]

    assert set(outcomes(found).values()) == {"unknown"}
    assert len(found.exchanges) == 1
    assert found.capabilities.get_known_values() == {}


def held(seen: ReceivedRequest) -> ScriptedReply:
    """An endpoint with constraints, a seed, stop words, a raw completion, and a dislike of foreign ids, null content
    and later system messages."""
    body = seen.json()
    if seen.path.endswith("/completions") and "chat" not in seen.path:
        return chat_reply({"content": ""}, choices=[{"text": " four"}])
    if not isinstance(body["messages"], list):
        return error_reply(400, "messages must be a list")
    if trouble := disliked(body["messages"]):
        return error_reply(400, trouble)
    if "response_format" in body:
        return text_reply('{"verdict": "kestrel"}')
    if {"grammar", "ebnf"} & body.keys():
        return text_reply("kestrel")
    return spoken(body)


def disliked(messages: list[Any]) -> str:
    if any(message["role"] == "system" for message in messages[1:]):
        return "a system message must be the first"
    for message in messages:
        if message["role"] == "assistant" and message.get("tool_calls"):
            if len(message["tool_calls"][0]["id"]) != 9:
                return "ids must have nine characters"
            if message["content"] is None:
                return "content must be a text"
    return ""


def spoken(body: dict[str, Any]) -> ScriptedReply:
    limit = body.get("max_tokens")
    if limit == 4:
        return chat_reply({"content": "one two"}, finish_reason="length", usage={"completion_tokens": 4})
    if "stop" in body:
        return text_reply("one two three")
    if body.get("seed"):
        return text_reply(f"Boat {body['seed']}")
    if body.get("tools") and body.get("tool_choice") != "none" and body["messages"][-1]["role"] != "tool":
        named = {tool["function"]["name"] for tool in body["tools"]}
        name = "probe_echo" if "probe_echo" in named else next(iter(named))
        return with_id(tool_call_reply((name, {"value": "kestrel-4821"} if name == "probe_echo" else {})))
    return text_reply("A word.")


def with_id(answer: ScriptedReply) -> ScriptedReply:
    assert isinstance(answer.body, bytes)
    return ScriptedReply(answer.status, answer.headers, answer.body.replace(b'"call_1"', b'"prbAAAAAA"'))


@pytest.fixture(scope="module")
def picky() -> ProbeFindings:
    with ScriptedServer(held) as provider:
        return run_probe(provider.endpoint(), probe_conformance)


def test_constraints_that_hold_are_known_by_an_answer_that_is_not_true(picky: ProbeFindings) -> None:
    assert picky.capabilities.constrained == (
        "grammar",
        "gbnf",
        "ebnf",
        "strict",
        "response_format",
        "tgi_grammar",
        "fireworks_grammar",
    )
    assert picky.checks["constraints"].outcome == "passed"


@pytest.mark.parametrize("refuses", [False, True])
def test_an_endpoint_that_holds_no_patterns_is_sent_a_plainer_schema(refuses: bool) -> None:
    def play(seen: ReceivedRequest) -> ScriptedReply:
        asked = json.dumps(seen.json().get("response_format", {}))
        if "pattern" in asked:
            return error_reply(400, "pattern is not supported") if refuses else text_reply('{"verdict": "Oslo"}')
        return text_reply('{"verdict": "kestrel"}') if "json_schema" in asked else text_reply("Oslo")

    async def asked(prober: Prober) -> AsyncIterator[ProbeCheck]:
        yield await check_constraints(prober)

    with ScriptedServer(play) as provider:
        found = run_probe(provider.endpoint(), asked)

    assert found.capabilities.constrained == ("strict", "plain_schema")


def test_ids_and_content_that_are_refused_are_found_one_by_one(picky: ProbeFindings) -> None:
    assert picky.capabilities.tool_id_pattern == "^[a-zA-Z0-9]{9}$"
    assert picky.capabilities.content_null_ok is False


def test_a_refused_later_system_message_is_found(picky: ProbeFindings) -> None:
    assert picky.capabilities.allows_midturn_system is False


def test_sampling_options_are_told_by_their_effect(picky: ProbeFindings) -> None:
    assert picky.capabilities.honours == ("max_tokens", "stop", "temperature", "seed")


def test_required_named_and_raw_completion_are_told(picky: ProbeFindings) -> None:
    assert picky.capabilities.tool_choice_values == ("auto", "none", "required", "named")
    assert (picky.capabilities.raw_completion, picky.capabilities.prompt_endpoint) == (True, "completions")


def test_a_call_that_never_comes_twice_is_one_at_a_time(picky: ProbeFindings) -> None:
    assert picky.capabilities.supports_parallel_tools is False


def test_a_wrong_prefix_is_found_and_the_right_one_named() -> None:
    def play(seen: ReceivedRequest) -> ScriptedReply:
        if seen.path == "/api/v1/models":
            return ScriptedReply(
                200, {"content-type": "application/json"}, json.dumps({"data": [{"id": "m"}]}).encode()
            )
        return error_reply(404, "no such page")

    with ScriptedServer(play) as provider:
        found = run_probe(provider.endpoint(api_prefix="/v2"), probe_conformance)

    assert found.checks["prefix"].outcome == "failed"
    assert "but a list of models under /api/v1" in found.checks["prefix"].sentence
    assert found.capabilities.get_known_values() == {}


def test_reasoning_beside_a_call_is_replayed_and_told() -> None:
    def play(seen: ReceivedRequest) -> ScriptedReply:
        messages = seen.json()["messages"]
        if not seen.json().get("tools"):
            return text_reply("A word.")
        replayed = [message for message in messages if message.get("reasoning_content")]
        if messages[-1]["role"] == "tool":
            return text_reply("Done.") if replayed else error_reply(400, "reasoning_content must be passed back")
        return chat_reply({"content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]})

    with ScriptedServer(play) as provider:
        found = run_probe(provider.endpoint(), probe_conformance)

    assert found.checks["reasoning_replay"].outcome == "passed"
    assert found.capabilities.reasoning_replay == "field"


CALL = {"id": "c1", "type": "function", "function": {"name": "probe_echo", "arguments": '{"value": "kestrel-4821"}'}}


def test_what_there_is_no_time_for_could_not_be_told() -> None:
    with ScriptedServer(held) as provider:
        found = run_probe(provider.endpoint(), lambda prober: probe_conformance(prober, seconds=0))

    assert outcomes(found)["unicode"] == "unknown"
    assert found.checks["unicode"].sentence == "Inconclusive: the probe ran out of time."
    assert outcomes(found)["tools"] == "passed"


@pytest.fixture(scope="module")
def messages() -> dict[str, ProbeFindings]:
    return probe_personas(("perfect", "several-at-once", "key-refused"), probe_conformance, wire="anthropic")


def test_an_endpoint_that_speaks_messages_is_asked_in_messages(
    messages: dict[str, ProbeFindings], personas: dict[str, ProbeFindings]
) -> None:
    found, chat = messages["perfect"], outcomes(personas["perfect"])

    assert {step.url.rpartition("/v1/")[2] for step in found.exchanges} == {"messages"}
    assert {step.status for step in found.exchanges} == {200, 400}  # 400: what is meant to be nonsense
    assert {slug for slug, outcome in outcomes(found).items() if outcome != chat[slug]} == {"midturn_system"}
    learned = found.capabilities
    assert (learned.supports_tool_use, learned.supports_parallel_tools) == (True, True)
    assert (learned.calls_shape, learned.arguments_shape, learned.ids) == ("list", "text", "unique")
    assert (learned.allows_midturn_system, learned.raw_completion) == (False, False)
    assert messages["several-at-once"].checks["parallel"].outcome == "failed"
    assert messages["key-refused"].capabilities.get_known_values() == {}


def test_endpoint_that_speaks_responses_is_asked_in_responses(personas: dict[str, ProbeFindings]) -> None:
    found = probe_personas(("perfect", "several-at-once"), probe_conformance, wire="responses")
    perfect, chat = found["perfect"], outcomes(personas["perfect"])

    assert {step.url.rpartition("/v1/")[2] for step in perfect.exchanges} == {"responses"}
    assert {slug: outcome for slug, outcome in outcomes(perfect).items() if outcome != chat[slug]} == {}
    learned = perfect.capabilities
    assert (learned.supports_tool_use, learned.supports_parallel_tools) == (True, True)
    assert (learned.calls_shape, learned.arguments_shape, learned.ids) == ("list", "text", "unique")
    assert (learned.allows_midturn_system, learned.raw_completion) == (True, False)
    assert found["several-at-once"].checks["parallel"].outcome == "failed"


def thinks(name: str) -> ProbeFindings:
    """An endpoint that reads the effort under one name, takes one limit, completes prompts as llama.cpp does, and
    passes over everything else."""

    def play(seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        if seen.path == "/completion":
            return json_reply({"content": " four", "stop": True})
        if seen.path.endswith("/v1/completions") or not isinstance(body["messages"], list):
            return error_reply(400, "not here")
        read = (
            body.get("reasoning_effort") if name == "reasoning_effort" else (body.get("reasoning") or {}).get("effort")
        )
        if read not in (None, "low"):
            return error_reply(400, f"{read} is no effort")
        if body.get("max_completion_tokens") == 4:
            return chat_reply({"content": "one two"}, finish_reason="length", usage={"completion_tokens": 4})
        if "Count" in body["messages"][-1]["content"]:
            return text_reply("one two three four five six seven eight nine ten")
        return tool_call_reply(("probe_echo", {"value": "x"})) if body.get("tools") else text_reply("A word.")

    with ScriptedServer(play) as provider:
        return run_probe(provider.endpoint(), probe_conformance)


@pytest.mark.parametrize("name", ["reasoning_effort", "reasoning.effort"])
def test_effort_and_limit_are_known_by_the_names_that_have_their_effect(name: str) -> None:
    found = thinks(name).capabilities

    assert (found.effort_name, found.limit_name) == (name, "max_completion_tokens")
    assert (found.raw_completion, found.prompt_endpoint) == (True, "llama")


def test_messages_constraints_and_efforts_are_sent_in_messages_fields() -> None:
    def play(seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        config = body.get("output_config") or {} if isinstance(body["messages"], list) else {}
        if config.get("effort") == "sideways":
            return error_reply(400, "output_config.effort: input should be low, medium or high")
        text = '{"verdict": "kestrel"}' if "format" in config else "A word."
        head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        block = {"type": "text", "text": text}
        return json_reply({**head, "content": [block], "usage": {"input_tokens": 9, "output_tokens": 2}})

    with ScriptedServer(play) as provider:
        found = run_probe(provider.endpoint(wire="anthropic"), probe_conformance).capabilities

    assert (found.constrained, found.effort_name) == (("output_config",), "output_config.effort")
