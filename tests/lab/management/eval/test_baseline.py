"""`manage.py eval --baseline`: cells of two runs, with the statistics of Compare."""

from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from tests.lab.scripted_runs import answer_correctly, make_scripted_model
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.management.eval.baseline import compare_with_baseline_run
from toolbench.lab.models import Run
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, text_reply

pytestmark = pytest.mark.django_db(transaction=True)


class Endpoint:
    """An endpoint that solves the patch task, or reads the workspace and changes nothing."""

    works = True

    def answer(self, request: ReceivedRequest) -> ScriptedReply:
        if not self.works and request.json()["messages"][-1]["role"] == "tool":
            return text_reply("Done.")
        return answer_correctly(request)


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables of the tester's environment and load the built-in data."""
    for name in ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "OPENROUTER_TRIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VERBOSE", "1")
    load_builtin_data()


def evaluate(**options: Any) -> str:
    out = StringIO()
    default_options = {
        "models": "all",
        "provider": "scripted",
        "scenarios": "happy_path,chat_only",
        "trials": "8",
        "yes": True,
    }
    call_command("eval", **(default_options | options), stdout=out)
    return out.getvalue()


def test_eval_baseline_with_a_worse_cell_exits_with_1_and_a_table(tmp_path: Path) -> None:
    endpoint, junit, markdown = Endpoint(), tmp_path / "cells.xml", tmp_path / "cells.md"
    with ScriptedServer(endpoint.answer) as scripted:
        make_scripted_model(scripted)
        evaluate()
        baseline = Run.objects.get()
        endpoint.works = False
        with pytest.raises(CommandError) as raised:
            evaluate(baseline=str(baseline.pk), junit=str(junit), markdown=str(markdown))
    run = Run.objects.latest("pk")
    rows = get_comparison(CompareQuery(a={"run": str(baseline.pk)}, b={"run": str(run.pk)})).rows

    assert raised.value.returncode == 1
    assert f"Worse than run {baseline.pk} beyond chance:\n  happy_path: 8/8 → 0/8, -100 points" in str(raised.value)
    (cell,) = compare_with_baseline_run(run, baseline.pk).cells
    differences = [row.compared.difference for row in rows]
    assert [(cell.difference, cell.p)] == [(found.value, found.p) for found in differences if found]
    assert [(suite.get("name"), suite.get("failures")) for suite in ElementTree.parse(junit).getroot()] == [
        (f"Run {run.pk}", "0"),
        (f"against run {baseline.pk}", "1"),
    ]
    assert "| happy_path | 8/8 → 0/8" in markdown.read_text()
    assert run.seed == baseline.seed


def test_eval_baseline_with_an_equal_run_passes_the_gate(scripted: ScriptedServer, tmp_path: Path) -> None:
    make_scripted_model(scripted)
    evaluate()
    baseline = Run.objects.get()

    output = evaluate(baseline=str(baseline.pk), markdown=str(tmp_path / "cells.md"))

    assert f"against run {baseline.pk}, happy_path: 8/8 → 8/8, +0 points" in output
    assert "All gates are passed." in (tmp_path / "cells.md").read_text()


def test_eval_baseline_without_a_shared_scenario_fails_the_gate(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    evaluate(scenarios="chat_only", trials="1")

    with pytest.raises(CommandError) as raised:
        evaluate(baseline=str(Run.objects.get().pk), trials="1")

    assert raised.value.returncode == 1
    assert "the runs share no scenario and settings" in str(raised.value)


def test_eval_baseline_that_is_unknown_sends_no_request(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)

    with pytest.raises(CommandError, match="There is no run 999999") as raised:
        evaluate(baseline="999999")

    assert (raised.value.returncode, scripted.seen, Run.objects.count()) == (2, [], 0)
