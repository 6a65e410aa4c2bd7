"""The gateway passes LangChain's own integration tests, on a model with native calls and on one that writes text."""

import asyncio
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.frameworks.running import ALIAS, HERMES_PERSONA, NATIVE_PERSONA, OTHER_ALIAS, ROOT, run_program, serve_alias

pytestmark = [pytest.mark.frameworks, pytest.mark.django_db(transaction=True)]

SUITE = ROOT / "tests/frameworks/inside/langchain_suite.py"
PASSED_COUNT = 43
# Tests that need features that the gateway lacks.
SKIPPED_NAMES = {
    "test_image_inputs",  # text only
    "test_audio_inputs",
    "test_pdf_inputs",
    "test_image_tool_message",
    "test_pdf_tool_message",
    "test_json_mode",  # the simulated models know no JSON mode
    "test_stream_time",  # benchmark of recorded answers
}


async def run_suite(persona: str, folder: Path) -> dict[str, dict[str, str]]:
    """Run the suite; return the names of its tests, with the messages, by outcome."""
    report = folder / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini"), "--noconftest", f"--junitxml={report}"]
    # LangChain shares one HTTP client between models, so the tests need one event loop.
    settings = ("asyncio_mode = auto", "asyncio_default_test_loop_scope = session")
    (folder / "pytest.ini").write_text("\n".join(["[pytest]", *settings, ""]), "utf-8")
    async with serve_alias(persona) as (url, token):
        variables = {
            "GATEWAY_URL": url,
            "GATEWAY_TOKEN": token,
            "GATEWAY_ALIAS": ALIAS,
            "GATEWAY_OTHER_ALIAS": OTHER_ALIAS,
        }
        _, output, errors = await run_program("langchain", folder, "-m", "pytest", *options, str(SUITE), **variables)
    assert report.exists(), output + errors
    outcomes: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for case in ElementTree.parse(report).iter("testcase"):
        found = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        outcome, message = ("passed", "") if found is None else (found.tag, str(found.text))
        outcomes[outcome][str(case.get("name"))] = message[-2000:]
    return outcomes


@pytest.mark.parametrize("persona", [NATIVE_PERSONA, HERMES_PERSONA])
def test_gateway_passes_the_integration_tests_of_langchain(persona: str, tmp_path: Path) -> None:
    outcomes = asyncio.run(run_suite(persona, tmp_path))
    failures = outcomes["failure"] | outcomes["error"]
    assert not failures, "\n\n".join(f"{name}: {message}" for name, message in failures.items())
    assert {name.partition("[")[0] for name in outcomes["skipped"]} == SKIPPED_NAMES
    assert len(outcomes["passed"]) == PASSED_COUNT
