import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.providers.probing.probe_runs import ProbeFindings, run_probe
from toolbench.providers.probing import tool_set_checks
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.prober import Prober
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, error_reply, text_reply

CHECKS = (tool_set_checks.check_names, tool_set_checks.check_max_tools, tool_set_checks.check_keywords)


def probe_tool_sets(refuse: Callable[[list[dict[str, Any]]], ScriptedReply | None]) -> ProbeFindings:
    """Probe an endpoint that answers, unless `refuse` returns a refusal for its tools."""

    async def run_checks(prober: Prober) -> AsyncIterator[ProbeCheck]:
        for check in CHECKS:
            yield await check(prober)

    def list_functions(body: dict[str, Any]) -> list[dict[str, Any]]:
        return [tool["function"] for tool in body["tools"]]

    with ScriptedServer(lambda seen: refuse(list_functions(seen.json())) or text_reply("Hello.")) as provider:
        return run_probe(provider.endpoint(), run_checks)


@pytest.mark.parametrize(
    "refusal", [401, 402, 403, 404, 429, 500, 503, "maximum context length is 512", "no tools here"]
)
def test_tool_set_checks_other_refusal_is_inconclusive(refusal: int | str) -> None:
    status, message = (refusal, "no") if isinstance(refusal, int) else (400, refusal)
    found = probe_tool_sets(lambda functions: error_reply(status, message))

    assert found.capabilities.get_known_values() == {}
    assert {check.outcome for check in found.checks.values()} == {"unknown"}


def test_check_names_accepts_a_pattern_that_is_refused_again() -> None:
    def narrow(functions: list[dict[str, Any]]) -> ScriptedReply | None:
        fine = all(re.fullmatch("[a-z0-9_]{1,32}", function["name"]) for function in functions)
        return (
            None
            if fine
            else error_reply(
                422, "tools.0.name: should match pattern '^[a-z0-9_]{1,32}$', see '^.*$' and '^(([a-z]+)+)+!$'"
            )
        )

    assert probe_tool_sets(narrow).capabilities.name_pattern == "^[a-z0-9_]{1,32}$"


@pytest.mark.parametrize(("message", "max_tools"), [("at most 40 tools", 40), ("error 12: too many", None)])
def test_check_max_tools_accepts_a_number_if_one_more_is_refused(message: str, max_tools: int | None) -> None:
    found = probe_tool_sets(lambda functions: error_reply(400, message) if len(functions) > 40 else None)

    assert found.capabilities.max_tools == max_tools
    assert found.checks["max_tools"].outcome == "failed"


def test_check_max_tools_without_a_number_tries_the_usual_one() -> None:
    found = probe_tool_sets(lambda functions: error_reply(400, "too many tools") if len(functions) > 128 else None)

    assert found.capabilities.max_tools == 128


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ("schema is not supported by default", None),
        ("'not' and $defs/oneOf are not permitted", ("oneOf", "not")),
        ("uniqueItems is not a keyword we know", ("uniqueItems",)),
    ],
)
def test_check_keywords_finds_only_the_keywords_that_a_refusal_names(
    message: str, refused: tuple[str, ...] | None
) -> None:
    def narrow(functions: list[dict[str, Any]]) -> ScriptedReply | None:
        return (
            error_reply(400, message)
            if any(word in str(functions) for word in ("oneOf", "'not'", "uniqueItems"))
            else None
        )

    assert probe_tool_sets(narrow).capabilities.schema_dialect == refused
