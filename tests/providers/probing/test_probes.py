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
from toolbench.providers.probing.sampling_checks import check_temperature
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


def list_outcomes(found: ProbeFindings) -> dict[str, str]:
    return {slug: check.outcome for slug, check in found.checks.items()}


def test_probe_conformance_runs_every_titled_check(personas: dict[str, ProbeFindings]) -> None:
    assert all(personas[name].checks.keys() == TITLES.keys() for name in PERSONAS)
    assert len(TITLES) == len(CHECKS)


def test_probe_conformance_of_perfect_persona_fails_three_checks_only(personas: dict[str, ProbeFindings]) -> None:
    found = personas["perfect"]

    assert {slug for slug, outcome in list_outcomes(found).items() if outcome == "failed"} == {
        "constraints",  # the simulated server enforces no schema
        "effort",  # it does not read the reasoning effort
        "completion",  # it has no raw completion
    }
    assert found.capabilities.supports_parallel_tools is True
    assert found.capabilities.constrained == ()
    assert found.capabilities.ids == "unique"


def test_probe_conformance_checks_name_their_exchanges(personas: dict[str, ProbeFindings]) -> None:
    count = len(personas["perfect"].exchanges)
    assert all(len(found.exchanges) <= MAX_REQUESTS for found in personas.values())

    for check in personas["perfect"].checks.values():
        assert check.exchanges
        assert set(check.exchanges) <= set(range(1, count + 1))


def test_dropped_tools_check_fails_by_the_endpoints_token_counts(personas: dict[str, ProbeFindings]) -> None:
    found = personas["tools-dropped"]

    assert found.checks["dropped_tools"].outcome == "failed"
    assert found.capabilities.tools_field == "dropped"


EQUAL_COUNTS = {"prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45}


def _build_caller(needed: str | None) -> Callable[[ReceivedRequest], ScriptedReply]:
    """Return an endpoint that does not count tools as tokens; it calls always, or under one tool_choice only."""

    def respond(seen: ReceivedRequest) -> ScriptedReply:
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

    return respond


@pytest.mark.parametrize("probe", [probe_first_use, probe_conformance])
@pytest.mark.parametrize("needed", [None, "required"])
def test_probe_received_call_outweighs_equal_token_counts(probe: RunProbe, needed: str | None) -> None:
    with ScriptedServer(_build_caller(needed)) as provider:
        known = run_probe(provider.endpoint(), probe).capabilities

    assert (known.supports_tool_use, known.tools_field) == (True, "accepted")
    assert choose_method(("native", "text_json"), known).method == "native"


def test_probe_call_under_a_named_choice_outweighs_equal_token_counts() -> None:
    with ScriptedServer(_build_caller("named")) as provider:
        found = run_probe(provider.endpoint(), probe_conformance)

    assert found.checks["tools"].learned["tools_field"] == "dropped"
    assert (found.capabilities.supports_tool_use, found.capabilities.tools_field) == (True, "accepted")


def test_ids_check_finds_missing_and_repeated_ids(personas: dict[str, ProbeFindings]) -> None:
    assert personas["blank-ids"].capabilities.ids == "missing"
    assert personas["equal-ids"].capabilities.ids == "repeated"


def test_stream_check_fails_for_a_stream_without_index_but_calls_count(personas: dict[str, ProbeFindings]) -> None:
    found = personas["stream-no-index"]

    assert found.checks["stream"].outcome == "failed"
    assert found.capabilities.supports_stream_tools is True


def test_tool_set_checks_find_refused_names_number_and_keywords(personas: dict[str, ProbeFindings]) -> None:
    found, unrestricted = personas["plain-tools"].capabilities, personas["perfect"].capabilities

    assert found.name_pattern == "^[a-zA-Z0-9_-]{1,64}$"
    assert found.max_tools == 100
    assert found.schema_dialect == ("oneOf", "patternProperties", "not")
    assert (unrestricted.name_pattern, unrestricted.max_tools, unrestricted.schema_dialect) == (None, None, ())


def test_probe_conformance_without_access_sends_one_request(personas: dict[str, ProbeFindings]) -> None:
    found = personas["key-refused"]

    assert set(list_outcomes(found).values()) == {"unknown"}
    assert len(found.exchanges) == 1
    assert found.capabilities.get_known_values() == {}


def answer_as_picky(seen: ReceivedRequest) -> ScriptedReply:
    """Answer as an endpoint with constraints, a seed, stop words and a raw completion, which refuses foreign ids, null
    content and later system messages."""
    body = seen.json()
    if seen.path.endswith("/completions") and "chat" not in seen.path:
        return chat_reply({"content": ""}, choices=[{"text": " four"}])
    if not isinstance(body["messages"], list):
        return error_reply(400, "messages must be a list")
    if refusal := find_refusal(body["messages"]):
        return error_reply(400, refusal)
    if "response_format" in body:
        return text_reply('{"verdict": "kestrel"}')
    if {"grammar", "ebnf"} & body.keys():
        return text_reply("kestrel")
    return build_answer(body)


def find_refusal(messages: list[Any]) -> str:
    if any(message["role"] == "system" for message in messages[1:]):
        return "a system message must be the first"
    for message in messages:
        if message["role"] == "assistant" and message.get("tool_calls"):
            if len(message["tool_calls"][0]["id"]) != 9:
                return "ids must have nine characters"
            if message["content"] is None:
                return "content must be a text"
    return ""


def build_answer(body: dict[str, Any]) -> ScriptedReply:
    limit = body.get("max_tokens")
    if limit == 4:
        return chat_reply({"content": "one two"}, finish_reason="length", usage={"completion_tokens": 4})
    if "stop" in body:
        return text_reply("one two three")
    if body.get("seed"):
        return text_reply(f"Boat {body['seed']}")
    if body.get("tools") and body.get("tool_choice") != "none" and body["messages"][-1]["role"] != "tool":
        names = {tool["function"]["name"] for tool in body["tools"]}
        name = "probe_echo" if "probe_echo" in names else next(iter(names))
        return replace_id(tool_call_reply((name, {"value": "kestrel-4821"} if name == "probe_echo" else {})))
    return text_reply("A word.")


def replace_id(answer: ScriptedReply) -> ScriptedReply:
    assert isinstance(answer.body, bytes)
    return ScriptedReply(answer.status, answer.headers, answer.body.replace(b'"call_1"', b'"prbAAAAAA"'))


@pytest.fixture(scope="module")
def picky_findings() -> ProbeFindings:
    with ScriptedServer(answer_as_picky) as provider:
        return run_probe(provider.endpoint(), probe_conformance)


def test_constraints_check_finds_every_enforced_constraint(picky_findings: ProbeFindings) -> None:
    assert picky_findings.capabilities.constrained == (
        "grammar",
        "gbnf",
        "ebnf",
        "strict",
        "response_format",
        "tgi_grammar",
        "fireworks_grammar",
    )
    assert picky_findings.checks["constraints"].outcome == "passed"


@pytest.mark.parametrize("refuses", [False, True])
def test_constraints_check_without_patterns_tries_a_plain_schema(refuses: bool) -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        schema = json.dumps(seen.json().get("response_format", {}))
        if "pattern" in schema:
            return error_reply(400, "pattern is not supported") if refuses else text_reply('{"verdict": "Oslo"}')
        return text_reply('{"verdict": "kestrel"}') if "json_schema" in schema else text_reply("Oslo")

    async def run_check(prober: Prober) -> AsyncIterator[ProbeCheck]:
        yield await check_constraints(prober)

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint(), run_check)

    assert found.capabilities.constrained == ("strict", "plain_schema")


def test_foreign_history_check_finds_refused_ids_and_null_content(picky_findings: ProbeFindings) -> None:
    assert picky_findings.capabilities.tool_id_pattern == "^[a-zA-Z0-9]{9}$"
    assert picky_findings.capabilities.content_null_ok is False


def test_midturn_system_check_finds_a_refused_system_message(picky_findings: ProbeFindings) -> None:
    assert picky_findings.capabilities.allows_midturn_system is False


def test_sampling_checks_find_options_that_have_an_effect(picky_findings: ProbeFindings) -> None:
    assert picky_findings.capabilities.honours == ("max_tokens", "stop", "temperature", "seed")


def test_tool_choice_and_completion_checks_find_supported_values(picky_findings: ProbeFindings) -> None:
    assert picky_findings.capabilities.tool_choice_values == ("auto", "none", "required", "named")
    assert (picky_findings.capabilities.raw_completion, picky_findings.capabilities.prompt_endpoint) == (
        True,
        "completions",
    )


def test_parallel_check_without_a_second_call_is_false(picky_findings: ProbeFindings) -> None:
    assert picky_findings.capabilities.supports_parallel_tools is False


def test_prefix_check_fails_and_names_the_right_prefix() -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        if seen.path == "/api/v1/models":
            return ScriptedReply(
                200, {"content-type": "application/json"}, json.dumps({"data": [{"id": "m"}]}).encode()
            )
        return error_reply(404, "no such page")

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint(api_prefix="/v2"), probe_conformance)

    assert found.checks["prefix"].outcome == "failed"
    assert "but a list of models under /api/v1" in found.checks["prefix"].sentence
    assert found.capabilities.get_known_values() == {}


def test_reasoning_replay_check_passes_if_reasoning_is_sent_back() -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        messages = seen.json()["messages"]
        if not seen.json().get("tools"):
            return text_reply("A word.")
        replayed = [message for message in messages if message.get("reasoning_content")]
        if messages[-1]["role"] == "tool":
            return text_reply("Done.") if replayed else error_reply(400, "reasoning_content must be passed back")
        return chat_reply({"content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]})

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint(), probe_conformance)

    assert found.checks["reasoning_replay"].outcome == "passed"
    assert found.capabilities.reasoning_replay == "field"


CALL = {"id": "c1", "type": "function", "function": {"name": "probe_echo", "arguments": '{"value": "kestrel-4821"}'}}


def test_probe_conformance_out_of_time_is_inconclusive() -> None:
    with ScriptedServer(answer_as_picky) as provider:
        found = run_probe(provider.endpoint(), lambda prober: probe_conformance(prober, seconds=0))

    assert list_outcomes(found)["unicode"] == "unknown"
    assert found.checks["unicode"].sentence == "Inconclusive: the probe ran out of time."
    assert list_outcomes(found)["tools"] == "passed"


@pytest.fixture(scope="module")
def messages() -> dict[str, ProbeFindings]:
    return probe_personas(("perfect", "several-at-once", "key-refused"), probe_conformance, wire="anthropic")


def test_probe_conformance_of_messages_endpoint_sends_messages(
    messages: dict[str, ProbeFindings], personas: dict[str, ProbeFindings]
) -> None:
    found, chat = messages["perfect"], list_outcomes(personas["perfect"])

    assert {step.url.rpartition("/v1/")[2] for step in found.exchanges} == {"messages"}
    assert {step.status for step in found.exchanges} == {200, 400}  # 400: requests that are invalid on purpose
    assert {slug for slug, outcome in list_outcomes(found).items() if outcome != chat[slug]} == {"midturn_system"}
    learned = found.capabilities
    assert (learned.supports_tool_use, learned.supports_parallel_tools) == (True, True)
    assert (learned.calls_shape, learned.arguments_shape, learned.ids) == ("list", "text", "unique")
    assert (learned.allows_midturn_system, learned.raw_completion) == (False, False)
    assert messages["several-at-once"].checks["parallel"].outcome == "failed"
    assert messages["key-refused"].capabilities.get_known_values() == {}


def test_probe_conformance_of_responses_endpoint_sends_responses(personas: dict[str, ProbeFindings]) -> None:
    found = probe_personas(("perfect", "several-at-once"), probe_conformance, wire="responses")
    perfect, chat = found["perfect"], list_outcomes(personas["perfect"])

    assert {step.url.rpartition("/v1/")[2] for step in perfect.exchanges} == {"responses"}
    assert {slug: outcome for slug, outcome in list_outcomes(perfect).items() if outcome != chat[slug]} == {}
    learned = perfect.capabilities
    assert (learned.supports_tool_use, learned.supports_parallel_tools) == (True, True)
    assert (learned.calls_shape, learned.arguments_shape, learned.ids) == ("list", "text", "unique")
    assert (learned.allows_midturn_system, learned.raw_completion) == (True, False)
    assert found["several-at-once"].checks["parallel"].outcome == "failed"


def probe_thinking_endpoint(name: str) -> ProbeFindings:
    """Probe an endpoint that reads the effort under one name, takes one limit, completes prompts as llama.cpp does,
    and ignores everything else."""

    def respond(seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        if seen.path == "/completion":
            return json_reply({"content": " four", "stop": True})
        if seen.path.endswith("/v1/completions") or not isinstance(body["messages"], list):
            return error_reply(400, "not here")
        effort = (
            body.get("reasoning_effort") if name == "reasoning_effort" else (body.get("reasoning") or {}).get("effort")
        )
        if effort not in (None, "low"):
            return error_reply(400, f"{effort} is no effort")
        if body.get("max_completion_tokens") == 4:
            return chat_reply({"content": "one two"}, finish_reason="length", usage={"completion_tokens": 4})
        if "Count" in body["messages"][-1]["content"]:
            return text_reply("one two three four five six seven eight nine ten")
        return tool_call_reply(("probe_echo", {"value": "x"})) if body.get("tools") else text_reply("A word.")

    with ScriptedServer(respond) as provider:
        return run_probe(provider.endpoint(), probe_conformance)


@pytest.mark.parametrize("name", ["reasoning_effort", "reasoning.effort"])
def test_effort_and_limit_checks_find_the_names_that_have_an_effect(name: str) -> None:
    found = probe_thinking_endpoint(name).capabilities

    assert (found.effort_name, found.limit_name) == (name, "max_completion_tokens")
    assert (found.raw_completion, found.prompt_endpoint) == (True, "llama")


def test_constraints_and_effort_checks_use_the_fields_of_messages() -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        config = body.get("output_config") or {} if isinstance(body["messages"], list) else {}
        if config.get("effort") == "sideways":
            return error_reply(400, "output_config.effort: input should be low, medium or high")
        text = '{"verdict": "kestrel"}' if "format" in config else "A word."
        head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        block = {"type": "text", "text": text}
        return json_reply({**head, "content": [block], "usage": {"input_tokens": 9, "output_tokens": 2}})

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint(wire="anthropic"), probe_conformance).capabilities

    assert (found.constrained, found.effort_name) == (("output_config",), "output_config.effort")


def test_temperature_check_names_the_error_of_the_first_answer() -> None:
    answers = iter([error_reply(400, "no open questions"), text_reply("Kestrel")])

    async def run_check(prober: Prober) -> AsyncIterator[ProbeCheck]:
        yield await check_temperature(prober)

    with ScriptedServer(lambda _: next(answers)) as provider:
        check = run_probe(provider.endpoint(), run_check).checks["temperature"]

    assert check.outcome == "unknown"
    assert "no open questions" in check.sentence
