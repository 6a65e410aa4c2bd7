"""All metrics of a run by configuration."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from toolbench.lab.models import Run
from toolbench.lab.results.run import metrics
from toolbench.lab.results.run.metrics import get_run_metrics

pytestmark = pytest.mark.django_db


def test_run_metrics_have_a_value_or_none_for_each_configuration() -> None:
    run = make_run()
    calling, silent = make_config(run), make_config(run, profile="other")
    for outcome in ("pass", "pass", "pass", "fail"):
        make_trial(make_cell(calling), outcome, failed_calls=1, missing_calls=1, cached_tokens=8)
    make_trial(make_cell(silent), "fail", calls=0, valid_calls=0)
    recompute_stale_cells()
    page = get_run_metrics(run.pk)
    found = {line.metric.name: line.values for _, lines in page.groups for line in lines}
    recovery, missing, cached = found["recovery"], found["missing_calls"][0].rate, found["cached"][0].figure
    assert recovery[0].rate is not None
    assert (recovery[0].rate.k, recovery[0].rate.n, recovery[1].rate) == (3, 4, None)
    assert missing is not None
    assert (missing.k, missing.n) == (4, 8)
    assert cached is not None
    assert cached.low == 8
    assert {"first_token", "cost", "control"}.isdisjoint(found)
    p95 = found["p95"][0].quantile
    assert p95 is not None
    assert (p95.n, p95.high) == (4, None)


def test_run_metrics_name_settings_of_all_columns_only_once() -> None:
    run = make_run()
    for strategy in ("baseline", "production"):
        make_trial(make_cell(make_config(run, strategy=strategy)), "pass")
    recompute_stale_cells()
    page = get_run_metrics(run.pk)
    assert [column.settings for column in page.columns] == [{"strategy": "baseline"}, {"strategy": "production"}]
    assert page.shared_settings == {"provider": "Example", "profile": "default", "method": "native"}


def test_run_metrics_compare_settings_with_hidden_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_COLUMNS", 2)
    run = make_run()
    for method, model_name in (("native", "a"), ("native", "b"), ("text_json", "c")):
        make_trial(make_cell(make_config(run, method=method, model_name=model_name)), "pass")
    recompute_stale_cells()
    page = get_run_metrics(run.pk)
    assert page.hidden_column_count == 1
    assert "method" not in page.shared_settings
    assert [column.settings for column in page.columns] == [{"method": "native"}] * 2


def test_run_metrics_of_one_column_name_all_settings_in_its_head() -> None:
    run = make_run()
    make_trial(make_cell(make_config(run, stream=True)), "pass")
    recompute_stale_cells()
    page = get_run_metrics(run.pk)
    assert page.shared_settings == {}
    assert page.columns[0].settings["profile"] == "default"
    assert page.columns[0].settings["answers"] == "streamed"


def test_run_metrics_of_an_unknown_run_raise_does_not_exist() -> None:
    with pytest.raises(Run.DoesNotExist):
        get_run_metrics(1)
