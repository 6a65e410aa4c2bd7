"""`manage.py eval --baseline`: cells of two runs, with the statistics of Compare."""

from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError

from tests.lab.eval_command import evaluate
from tests.lab.scripted_runs import answer_correctly, make_scripted_model
from toolbench.lab.management.eval.baseline import compare_with_baseline_run
from toolbench.lab.models import Run
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, text_reply

run_eval = partial(evaluate, trials="8")

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("eval_environment")]


class Endpoint:
    """An endpoint that solves the patch task, or reads the workspace and changes nothing."""

    works = True

    def answer(self, request: ReceivedRequest) -> ScriptedReply:
        if not self.works and request.json()["messages"][-1]["role"] == "tool":
            return text_reply("Done.")
        return answer_correctly(request)


def test_eval_baseline_with_a_worse_cell_exits_with_1_and_a_table(tmp_path: Path) -> None:
    endpoint, junit, markdown = Endpoint(), tmp_path / "cells.xml", tmp_path / "cells.md"
    with ScriptedServer(endpoint.answer) as scripted:
        make_scripted_model(scripted)
        run_eval()
        baseline = Run.objects.get()
        endpoint.works = False
        with pytest.raises(CommandError) as raised:
            run_eval(baseline=str(baseline.pk), junit=str(junit), markdown=str(markdown))
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
    run_eval()
    baseline = Run.objects.get()

    output = run_eval(baseline=str(baseline.pk), markdown=str(tmp_path / "cells.md"))

    assert f"against run {baseline.pk}, happy_path: 8/8 → 8/8, +0 points" in output
    assert "All gates are passed." in (tmp_path / "cells.md").read_text()


def test_eval_baseline_without_a_shared_scenario_fails_the_gate(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)
    run_eval(scenarios="chat_only", trials="1")

    with pytest.raises(CommandError) as raised:
        run_eval(baseline=str(Run.objects.get().pk), trials="1")

    assert raised.value.returncode == 1
    assert "the runs share no scenario and settings" in str(raised.value)


def test_eval_baseline_that_is_unknown_sends_no_request(scripted: ScriptedServer) -> None:
    make_scripted_model(scripted)

    with pytest.raises(CommandError, match="There is no run 999999") as raised:
        run_eval(baseline="999999")

    assert (raised.value.returncode, scripted.seen, Run.objects.count()) == (2, [], 0)
