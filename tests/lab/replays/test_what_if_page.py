from collections.abc import Iterator
from typing import Any

import pytest

from tests.factories import make_config, make_model, make_run
from tests.lab.scripted_runs import launch_run, make_scripted_model, run_worker_session
from tests.lab.simulated_runs import get_simulated_model, run_to_end, serve_simulated_models
from toolbench.engine.policy.settings import resolve_policy
from toolbench.evals import scenarios
from toolbench.lab.models import Cell, Preset, RunConfig
from toolbench.lab.replays.ablation import run_ablation
from toolbench.lab.replays.what_if import NothingToReplayError, ReplayScope
from toolbench.lab.replays.what_if_page import get_what_if_page
from toolbench.lab.replays.what_if_settings import WhatIfSettings
from toolbench.lab.worker.trial_plan import load_frozen_configs
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, text_reply

pytestmark = pytest.mark.django_db(transaction=True)
ONE_CALL = ("weather", "classify_intent")
FAULTY_MODELS = (
    "legacy-function-call",
    "tagged-calls",
    "tool-calls-object",
    "reliable-70",
    "fenced-calls",
    "wrong-value",
)
TAGGED = '<tool_call>{"name": "get_weather", "arguments": {"location": "%s"}}</tool_call>'


@pytest.fixture
def personas() -> Iterator[None]:
    with serve_simulated_models():
        yield


def test_get_what_if_page_changes_outcomes_by_true_rates(personas: None) -> None:
    models = [get_simulated_model(slug) for slug in FAULTY_MODELS]
    run = run_to_end(*models, scenarios=(*ONE_CALL, "happy_path"), strategies=("raw", "production"), trials=3)

    for cell in run.cells.select_related("config"):
        strategy = cell.config.strategy
        other = {"raw": "production", "production": "raw"}[strategy]
        found = get_what_if_page(ReplayScope("cell", cell.pk), WhatIfSettings(strategy=other)).totals
        rates = get_simulated_model(cell.config.model_name).true_rates
        rates = rates.get(cell.scenario, rates[scenarios.lookup_scenario(cell.scenario).group])
        name = (cell.config.model_name, cell.scenario, strategy)
        assert found is not None
        if rates["raw"] == rates["production"]:
            assert found.changed_outcomes == (), name
        elif strategy == "production":
            assert found.sentence == "3 pass → fail", name
        elif cell.scenario in ONE_CALL:
            assert found.sentence == "3 fail → pass", name
        else:
            assert (found.sentence, found.after.lowest.k, found.after.highest.k) == ("3 unknown", 0, 3), name


def test_get_what_if_page_counts_unknown_as_all_fail_and_all_pass(personas: None) -> None:
    cell = run_to_end(
        get_simulated_model("legacy-function-call"), strategies=("raw",), scenarios=("happy_path",)
    ).cells.get()

    found = get_what_if_page(ReplayScope("cell", cell.pk), WhatIfSettings(strategy="production"))

    assert found.totals is not None
    assert found.totals.sentence == "3 unknown"
    assert (found.totals.after.lowest.k, found.totals.after.highest.k, found.totals.after.lowest.n) == (0, 3, 3)
    assert {(item.unknown_from, item.why) for item, _ in found.changes} == {(3, "no further answer is stored")}


def test_get_what_if_page_ablation_omits_each_transform(personas: None) -> None:
    cell = run_to_end(get_simulated_model("legacy-function-call"), scenarios=("happy_path",), trials=2).cells.get()

    found = get_what_if_page(ReplayScope("cell", cell.pk), WhatIfSettings(), with_ablation=True)

    changed_trials = {row.name: len(row.changed) for row in found.ablations if row.changed}
    assert changed_trials == {"assistant_function_call_to_tool_calls": 2, "all": 2}
    assert {"assistant_tool_calls_object_to_array"} <= {row.name for row in found.ablations}


def test_get_what_if_page_ablation_without_transforms_has_hint(scripted: ScriptedServer) -> None:
    model = make_scripted_model(scripted)
    run = launch_run(model, trials=1)
    run_worker_session(model)
    raw = get_what_if_page(ReplayScope("run", run.pk), WhatIfSettings(strategy="raw"), with_ablation=True)
    assert (raw.ablations, "none can be left out" in raw.hint) == ((), True)


def test_run_ablation_of_trial_without_chosen_outcome_lists_no_change(scripted: ScriptedServer) -> None:
    trial = _run_cell(scripted, trials=1).trials.get()
    (ablation,) = run_ablation([trial.pk], WhatIfSettings(), ["cut_value"], ())
    assert (ablation.changed, ablation.unsure, ablation.totals.same) == ((), 0, 1)


def test_get_what_if_page_names_assumed_parameters(personas: None) -> None:
    cell = run_to_end(get_simulated_model("perfect"), strategies=("raw",), scenarios=("weather",)).cells.get()

    found = get_what_if_page(ReplayScope("cell", cell.pk), WhatIfSettings(strategy="production"))

    assert found.assumed == ("parallel_tool_calls",)
    assert found.totals is not None
    assert found.totals.sentence == "3 unchanged"


def test_get_what_if_page_is_unknown_if_parallel_calls_are_refused(personas: None) -> None:
    cell = run_to_end(
        get_simulated_model("several-at-once"), strategies=("raw",), scenarios=("happy_path",)
    ).cells.get()

    found = get_what_if_page(ReplayScope("cell", cell.pk), WhatIfSettings(strategy="baseline"))

    assert {item.unknown_from for item, _ in found.changes} == {1}


def test_get_what_if_page_applies_limits_and_user_presets(scripted: ScriptedServer) -> None:
    cell = _run_cell(scripted)
    Preset.objects.create(name="own", patch={"max_tool_args_bytes": 3})

    short = get_what_if_page(ReplayScope("run", cell.run_id), WhatIfSettings(limits=(("max_turns", 2),)))
    tiny = get_what_if_page(ReplayScope("trial", cell.trials.all()[0].pk), WhatIfSettings(presets=("own",)))

    assert short.totals is not None
    assert short.totals.sentence == "3 pass → fail"
    assert {item.after for item, _ in tiny.changes} == {"unknown"}


def test_get_what_if_page_lists_changed_outcomes_first(personas: None) -> None:
    run = run_to_end(
        get_simulated_model("perfect"), get_simulated_model("legacy-function-call"), scenarios=("happy_path",), trials=2
    )

    found = get_what_if_page(
        ReplayScope("run", run.pk), WhatIfSettings(without=("assistant_function_call_to_tool_calls",))
    )

    assert [item.has_changed for item, _ in found.changes] == [True, True, False, False]
    assert ["legacy-function-call" in config for _, config in found.changes] == [True, True, False, False]


def test_get_what_if_page_with_text_format_reads_calls_in_text() -> None:
    def play(seen: ReceivedRequest) -> ScriptedReply:
        return text_reply(TAGGED % "Paris")

    with ScriptedServer(play) as provider:
        cell = _run_cell(provider, scenarios=("weather",), strategies=("raw",))

    settings = WhatIfSettings(presets=("content_tag_tool_call_fallback",))
    found = get_what_if_page(ReplayScope("cell", cell.pk), settings)

    assert found.totals is not None
    assert found.totals.before.k == 0
    assert {item.unknown_from for item, _ in found.changes} == {None}
    assert not any("calls no tool" in item.why for item, _ in found.changes)


def test_what_if_settings_strategy_keeps_tool_use_mode_of_run(scripted: ScriptedServer) -> None:
    (config,) = load_frozen_configs(
        launch_run(make_scripted_model(scripted)).configs.values_list("pk", flat=True)
    ).values()
    settings = WhatIfSettings(strategy="default_tool_calling").apply(config)
    assert resolve_policy(settings.layers).policy.tool_use_mode == "enforced"


@pytest.mark.parametrize("source", ["other configuration", "model"])
def test_what_if_settings_strategy_of_imported_model_uses_workarounds(source: str) -> None:
    run, tags = make_run(imported=True), "content_tag_tool_call_fallback"
    model = make_model("there/a", workarounds=[tags] if source == "model" else [])
    frozen = [["infrastructure", {}], [f"workaround {tags}", {"response_transforms": ["tool_calls_from_text"]}]]
    config = make_config(run, model, strategy="raw", layers=[["engine default", {}]])
    if source == "other configuration":
        make_config(run, model, strategy="production", layers=frozen)
    RunConfig.objects.update(model=None)
    (raw,) = load_frozen_configs([config.pk]).values()
    names = [name for name, _ in WhatIfSettings(strategy="production").apply(raw).layers]
    assert f"workaround {tags}" in names


def test_get_what_if_page_of_unknown_scope_raises() -> None:
    with pytest.raises(NothingToReplayError, match="no finished trial"):
        get_what_if_page(ReplayScope("cell", 12345), WhatIfSettings())
    with pytest.raises(NothingToReplayError, match="No trial, cell or run is chosen"):
        ReplayScope.from_query({"cell": "x"})


def test_get_what_if_page_invalid_settings_are_refused(scripted: ScriptedServer) -> None:
    cell = _run_cell(scripted)
    Preset.objects.create(name="bad", patch={"no_such_key": 1})

    found = get_what_if_page(ReplayScope("cell", cell.pk), WhatIfSettings(presets=("bad",)))

    assert "no_such_key" in found.refused
    assert found.changes == ()


def test_what_if_settings_query_round_trip_names_ignored_values() -> None:
    Preset.objects.create(name="own", patch={})
    settings = WhatIfSettings.from_query(
        {
            "strategy": ["raw", "baseline", "raw"],
            "preset": ["own", "nobody", "own", "nobody"],
            "without": ["cut_value", "<b>", "no_such_step"],
            "format": ["hermes"],
            "max_turns": ["3"],
            "max_tool_args_bytes": ["-1"],
        }
    )

    assert settings == WhatIfSettings("raw", ("own",), ("cut_value",), "hermes", (("max_turns", 3),))
    assert settings.render_query() == "strategy=raw&preset=own&without=cut_value&format=hermes&max_turns=3"
    assert settings.ignored == ("preset nobody", "without <b>", "without no_such_step", "max_tool_args_bytes -1")
    assert settings.summary == "strategy raw, with own, without cut_value, text format hermes, max turns 3"


def _run_cell(provider: ScriptedServer, **fields: Any) -> Cell:
    model = make_scripted_model(provider)
    run = launch_run(model, **fields)
    run_worker_session(model)
    return run.cells.get()
