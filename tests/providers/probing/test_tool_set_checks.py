import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.providers.probing.probe_runs import ProbeFindings, run_probe
from toolbench.providers.probing import tool_set_checks
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.prober import Prober
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, error_reply, text_reply

ASKED = (tool_set_checks.check_names, tool_set_checks.check_max_tools, tool_set_checks.check_keywords)


def offered(trouble: Callable[[list[dict[str, Any]]], ScriptedReply | None]) -> ProbeFindings:
    """What is found of an endpoint that answers, unless these tools give it trouble."""

    async def asked(prober: Prober) -> AsyncIterator[ProbeCheck]:
        for ask in ASKED:
            yield await ask(prober)

    def functions(body: dict[str, Any]) -> list[dict[str, Any]]:
        return [tool["function"] for tool in body["tools"]]

    with ScriptedServer(lambda seen: trouble(functions(seen.json())) or text_reply("Hello.")) as provider:
        return run_probe(provider.endpoint(), asked)


@pytest.mark.parametrize(
    "refusal", [401, 402, 403, 404, 429, 500, 503, "maximum context length is 512", "no tools here"]
)
def test_what_is_no_refusal_of_these_tools_teaches_nothing(refusal: int | str) -> None:
    status, said = (refusal, "no") if isinstance(refusal, int) else (400, refusal)
    found = offered(lambda functions: error_reply(status, said))

    assert found.capabilities.get_known_values() == {}
    assert {check.outcome for check in found.checks.values()} == {"unknown"}


def test_refused_pattern_is_believed_if_sending_it_again_is_refused() -> None:
    def narrow(functions: list[dict[str, Any]]) -> ScriptedReply | None:
        fine = all(re.fullmatch("[a-z0-9_]{1,32}", function["name"]) for function in functions)
        return (
            None
            if fine
            else error_reply(
                422, "tools.0.name: should match pattern '^[a-z0-9_]{1,32}$', see '^.*$' and '^(([a-z]+)+)+!$'"
            )
        )

    assert offered(narrow).capabilities.name_pattern == "^[a-z0-9_]{1,32}$"


@pytest.mark.parametrize(("said", "most"), [("at most 40 tools", 40), ("error 12: too many", None)])
def test_refused_number_is_believed_if_one_more_is_refused(said: str, most: int | None) -> None:
    found = offered(lambda functions: error_reply(400, said) if len(functions) > 40 else None)

    assert found.capabilities.max_tools == most
    assert found.checks["max_tools"].outcome == "failed"


def test_a_refusal_that_names_no_number_is_tried_with_the_usual_one() -> None:
    found = offered(lambda functions: error_reply(400, "too many tools") if len(functions) > 128 else None)

    assert found.capabilities.max_tools == 128


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("schema is not supported by default", None),
        ("'not' and $defs/oneOf are not permitted", ("oneOf", "not")),
        ("uniqueItems is not a keyword we know", ("uniqueItems",)),
    ],
)
def test_a_keyword_is_refused_where_the_refusal_names_it(said: str, refused: tuple[str, ...] | None) -> None:
    def narrow(functions: list[dict[str, Any]]) -> ScriptedReply | None:
        return (
            error_reply(400, said)
            if any(word in str(functions) for word in ("oneOf", "'not'", "uniqueItems"))
            else None
        )

    assert offered(narrow).capabilities.schema_dialect == refused
