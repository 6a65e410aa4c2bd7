from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_model, make_provider, make_run
from tests.lab.simulated_runs import get_simulated_model, run_to_end, serve_simulated_models
from tests.page_html import read_html
from toolbench.lab.endpoints import capabilities
from toolbench.lab.endpoints.capabilities import get_measured_calls, get_model_capabilities
from toolbench.lab.metrics.pools import refresh_pools
from toolbench.lab.models import Cell, Model, Probe, Run

pytestmark = pytest.mark.django_db


def make_probe(model: Model, *, days: float = 0, **fields: object) -> Probe:
    defaults = {"kind": "first_use", "state": "done", "ok": True, "finished_at": timezone.now() - timedelta(days=days)}
    return Probe.objects.create(model=model, provider=model.provider, **(defaults | fields))


def test_get_model_capabilities_of_unprobed_model_is_empty() -> None:
    assert get_model_capabilities(make_model()).capabilities.get_known_values() == {}


def test_get_model_capabilities_model_overrides_provider() -> None:
    provider = make_provider("OpenAI", template="openai")
    model = make_model("gpt", provider=provider, capabilities={"max_tools": 12})

    effective = get_model_capabilities(model)

    assert effective.capabilities.max_tools == 12
    assert effective.capabilities.supports_strict is True
    assert effective.origins["max_tools"].who == "a person"
    assert effective.origins["supports_strict"].who == "OpenAI's API reference"


def test_get_model_capabilities_ignores_unreadable_declaration() -> None:
    assert (
        get_model_capabilities(make_model(capabilities={"supports_flight": True})).capabilities.get_known_values() == {}
    )


def test_get_model_capabilities_ignores_unreadable_probe(owner_client: Client) -> None:
    model = make_model()
    probe = make_probe(model, learned={"supports_flight": True})

    assert get_model_capabilities(model).capabilities.get_known_values() == {}
    assert owner_client.get(f"/probes/{probe.pk}/").status_code == 200


def test_get_model_capabilities_uses_probe_for_seven_days() -> None:
    model = make_model()
    make_probe(model, days=7.1, learned={"supports_tool_use": False})
    assert get_model_capabilities(model).capabilities.supports_tool_use is None

    fresh = make_probe(model, days=6.9, learned={"supports_tool_use": True})
    assert get_model_capabilities(model).capabilities.supports_tool_use is True
    assert get_model_capabilities(model).origins["supports_tool_use"].who == f"probe {fresh.pk}"


def test_get_model_capabilities_ignores_inconclusive_probe() -> None:
    model = make_model()
    make_probe(model, ok=False, learned={"supports_tool_use": False})

    assert get_model_capabilities(model).capabilities.get_known_values() == {}


def test_get_model_capabilities_uses_latest_probe_of_each_kind() -> None:
    model = make_model()
    make_probe(model, days=3, kind="conformance", learned={"supports_tool_use": False, "ids": "unique"})
    make_probe(model, days=2, kind="conformance", learned={"supports_tool_use": True})

    assert get_model_capabilities(model).capabilities.get_known_values() == {"supports_tool_use": True}


def test_get_model_capabilities_prefers_probe_that_finished_last() -> None:
    model = make_model()
    queued = make_probe(model, days=1, kind="conformance", learned={"supports_tool_use": True})
    make_probe(model, days=2, kind="first_use", learned={"supports_tool_use": False})

    assert get_model_capabilities(model).origins["supports_tool_use"].who == f"probe {queued.pk}"


def test_get_model_capabilities_measures_json_stability_of_trials() -> None:
    model = make_model()
    run = make_run()
    cell = make_cell(make_config(run, model=model, method="text_json"))
    Cell.objects.filter(pk=cell.pk).update(calling_turns=40, parse_error_turns=6)

    origin = get_model_capabilities(model).origins["json_stability"]

    assert get_model_capabilities(model).capabilities.json_stability == "low"
    assert (origin.source, origin.who, origin.at) == ("measured", "6 of 40 turns could not be read", run.created_at)


def test_get_model_capabilities_native_trials_leave_stability_unknown() -> None:
    model = make_model()
    cell = make_cell(make_config(make_run(), model=model, method="native"))
    Cell.objects.filter(pk=cell.pk).update(calling_turns=40, parse_error_turns=40)

    assert get_model_capabilities(model).capabilities.json_stability is None


def make_native_cell(model: Model, *, stream: bool = False, **counts: int) -> Cell:
    cell = make_cell(make_config(make_run(), model=model, method="native", stream=stream))
    Cell.objects.filter(pk=cell.pk).update(**counts)
    return cell


def test_get_model_capabilities_trial_calls_override_older_probe() -> None:
    model = make_model()
    make_probe(model, learned={"supports_tool_use": False, "tools_field": "dropped"})
    cell = make_native_cell(model, structured_answers=200, calling_answers=200, calls=200, called_rightly=100)

    effective = get_model_capabilities(model)

    origin = effective.origins["supports_tool_use"]
    assert (effective.capabilities.supports_tool_use, effective.capabilities.tools_field) == (True, "accepted")
    assert (origin.source, origin.who, origin.at) == (
        "measured",
        "200 answers with structured calls in trials",
        cell.run.created_at,
    )
    assert effective.overruled_records["tools_field"][0].source == "probed"
    assert effective.capabilities.supports_parallel_tools is None
    assert effective.capabilities.supports_stream_tools is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("slug", ["llama-text", "call-in-reasoning", "quoted-400"])
def test_get_model_capabilities_calls_read_from_text_are_not_measured(slug: str) -> None:
    with serve_simulated_models():
        model = get_simulated_model(slug)
        assert model.workarounds
        run = run_to_end(model, scenarios=("weather",), trials=1)

    cell = run.cells.get()
    assert (cell.passed, cell.calling_answers, cell.structured_answers) == (1, 1, 0)
    assert "measured" not in {origin.source for origin in get_model_capabilities(model).origins.values()}


def test_get_model_capabilities_parallel_and_streamed_calls_of_trials() -> None:
    model = make_model()
    make_native_cell(model, stream=True, structured_answers=10, calling_answers=10, calls=12, called_rightly=10)

    known = get_model_capabilities(model).capabilities

    assert (known.supports_parallel_tools, known.supports_stream_tools) == (True, True)


@pytest.mark.parametrize(("days", "supported"), [(0.0, False), (3.0, True)])
def test_get_model_capabilities_later_refusal_overrides_trial_calls(days: float, supported: bool) -> None:
    model = make_model()
    run = make_native_cell(model, structured_answers=10, calling_answers=10, calls=10, called_rightly=10).run
    Run.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(days=1))
    make_probe(model, days=days, learned={"supports_tool_use": False, "tools_field": "refused"})

    assert get_model_capabilities(model).capabilities.supports_tool_use is supported


def set_launch_time(cell: Cell, days: float, *, ended: float | None = None) -> None:
    now = timezone.now()
    finished = None if ended is None else now - timedelta(days=ended)
    Run.objects.filter(pk=cell.run_id).update(created_at=now - timedelta(days=days), finished_at=finished)


def test_get_model_capabilities_run_without_calls_keeps_refusal() -> None:
    model = make_model()
    calls = make_native_cell(model, structured_answers=200, calling_answers=200, calls=200, called_rightly=100)
    set_launch_time(calls, 3, ended=2.9)
    make_probe(model, days=2, learned={"supports_tool_use": False, "tools_field": "refused"})
    set_launch_time(make_native_cell(model, failed=50), 1, ended=0.9)

    assert get_model_capabilities(model).capabilities.supports_tool_use is False


def test_get_model_capabilities_run_ended_later_overrides_refusal() -> None:
    model = make_model()
    calls = make_native_cell(model, structured_answers=10, calling_answers=10, calls=10, called_rightly=10)
    set_launch_time(calls, 3, ended=1)
    make_probe(model, days=2, learned={"supports_tool_use": False, "tools_field": "refused"})

    effective = get_model_capabilities(model)

    calls.run.refresh_from_db()
    assert effective.capabilities.supports_tool_use is True
    assert effective.origins["supports_tool_use"].at == calls.run.finished_at


def test_get_model_capabilities_calls_in_text_are_not_parallel() -> None:
    model = make_model()
    make_native_cell(model, structured_answers=5, calling_answers=10, calls=15, called_rightly=10)

    assert get_model_capabilities(model).capabilities.supports_parallel_tools is None


def add_calls(model: Model, calls: int, *, state: str = Run.State.FINISHED) -> Cell:
    config = make_config(make_run(state=state), model, method="native")
    return make_cell(config, structured_answers=calls, calling_answers=calls, stale=False)


@pytest.mark.parametrize(("trials", "silent"), [(19, 0), (20, 20)])
def test_get_measured_calls_counts_silent_trials_from_twenty(trials: int, silent: int) -> None:
    model = make_model()
    make_cell(make_config(make_run(), model, method="native"), call_missed=trials, answered_turns=trials)

    assert get_measured_calls([model])[model.pk].trials_without_calls == silent
    assert get_model_capabilities(model).capabilities.supports_tool_use is None


def test_get_measured_calls_of_many_models_adds_unpooled_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [make_model(f"vendor/{number}") for number in range(3)]
    add_calls(models[0], 5)
    add_calls(models[1], 7)
    assert refresh_pools() == 2
    add_calls(models[0], 2, state=Run.State.RUNNING)
    from_cells = get_measured_calls(models)

    monkeypatch.setattr(capabilities, "MAX_UNCACHED_MODELS", 1)

    assert get_measured_calls(models) == from_cells
    assert {pk: counts.answers_with_calls for pk, counts in from_cells.items()} == {models[0].pk: 7, models[1].pk: 7}
    assert list(get_measured_calls(models[1:])) == [models[1].pk]


def test_get_measured_calls_are_cached_until_pooled_run_changes(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr(capabilities, "MAX_UNCACHED_MODELS", 1)
    models = [make_model(f"vendor/{number}") for number in range(2)]
    cell = add_calls(models[0], 5)
    refresh_pools()
    get_measured_calls(models)

    with django_assert_num_queries(3):
        get_measured_calls(models)

    Cell.objects.filter(pk=cell.pk).update(structured_answers=9, stale=True)
    assert get_measured_calls(models)[models[0].pk].answers_with_calls == 9


def test_model_and_compatibility_pages_show_trial_calls_with_source(owner_client: Client) -> None:
    model = make_model()
    make_native_cell(model, structured_answers=200, calling_answers=200, calls=200, called_rightly=100)

    for address in (f"/models/{model.pk}/", "/compatibility/"):
        page = read_html(owner_client.get(address))
        assert "200 answers with structured calls in trials" in page
        assert "measured" in page
