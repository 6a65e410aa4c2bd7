import pytest

from tests.lab.scripted_runs import answer_correctly, build_request, launch_run, make_scripted_model, run_worker_session
from toolbench.engine.capabilities.record import EffectiveCapabilities
from toolbench.lab.endpoints.capabilities import get_model_capabilities
from toolbench.lab.endpoints.probe_job import run_probe
from toolbench.lab.models import JobFailure, Model, Probe, Run, RunConfig, Trial
from toolbench.lab.planning import auto_method
from toolbench.lab.planning.auto_method import decide_all_waiting_methods, decide_waiting_methods
from toolbench.lab.planning.expansion import build_plan
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    error_reply,
    text_reply,
    tool_call_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)

CALL = '```json\n{"name": "state_get", "arguments": {}}\n```'


def plays_probes_too(seen: ReceivedRequest) -> ScriptedReply:
    body = seen.json()
    tools = [tool["function"]["name"] for tool in body.get("tools", ())]
    if tools != ["probe_echo"]:
        return answer_correctly(seen)
    told = body["messages"][-1]["role"] == "tool"
    return text_reply("It gave it back.") if told else tool_call_reply(("probe_echo", {"value": "x"}))


def refuses_tools(seen: ReceivedRequest) -> ScriptedReply:
    return error_reply(400, "this model does not support tools") if seen.json().get("tools") else text_reply(CALL)


@pytest.fixture
def model(scripted: ScriptedServer) -> Model:
    return make_scripted_model(scripted)


def settled(model: Model, run: Run) -> RunConfig:
    probe = Probe.objects.get(model=model)
    assert run_probe(probe.pk, on_finished=decide_waiting_methods)
    return RunConfig.objects.get(run=run)


def answered_by(model: Model, provider: ScriptedServer) -> None:
    model.provider.base_url = provider.base_url
    model.provider.save()


def test_auto_waits_for_the_probe_of_a_model_of_which_nothing_is_known(model: Model) -> None:
    run = launch_run(model, methods=("auto",))

    assert run.configs.get().method == "auto"
    assert Probe.objects.get().why == f"Run {run.pk} uses it for the first time."
    assert run_worker_session(model, seconds=0.5) == 0  # nothing is claimed yet


def test_auto_method_is_native_if_probe_saw_call_and_run_continues(model: Model) -> None:
    with ScriptedServer(plays_probes_too) as provider:
        answered_by(model, provider)
        run = launch_run(model, methods=("auto",))
        config = settled(model, run)
        assert run_worker_session(model) == 3

    assert (config.method, config.routing["reason"]) == ("native", "Tool calls are supported.")
    assert ["routing", {"method": "native"}] in config.layers
    assert set(Trial.objects.values_list("outcome", flat=True)) == {"pass"}


def test_auto_method_is_text_json_if_tools_are_refused_and_says_why(model: Model) -> None:
    with ScriptedServer(refuses_tools) as provider:
        answered_by(model, provider)
        run = launch_run(model, methods=("auto",))
        config = settled(model, run)

    assert config.method == "text_json"
    assert config.routing["deprecated"] is True
    assert config.routing["passed"][0] == {"method": "native", "why": "The endpoint refuses requests with tools."}
    assert config.routing["known"]["tools_field"]["source"] == "probed"


def test_named_method_waits_for_the_probe_and_keeps_its_method(model: Model) -> None:
    with ScriptedServer(plays_probes_too) as provider:
        answered_by(model, provider)
        run = launch_run(model, probe_unknown=True)
        assert run.configs.get().awaits_probe
        assert run_worker_session(model, seconds=0.5) == 0
        config = settled(model, run)
        assert run_worker_session(model) == 3

    assert (config.method, config.routing, config.awaits_probe) == ("native", {}, False)
    assert (config.support["value"], config.support["source"]) == (True, "probed")
    assert Run.objects.get().state == "finished"


def test_named_method_is_not_applicable_where_the_probe_meets_a_refusal(model: Model) -> None:
    with ScriptedServer(refuses_tools) as provider:
        answered_by(model, provider)
        run = launch_run(model, probe_unknown=True)
        config = settled(model, run)
        run_worker_session(model, seconds=0.5)

    assert config.method == "native"
    trial = Trial.objects.filter(run=run)[0]
    assert (trial.outcome, trial.sentence) == ("na", "The endpoint refuses requests with tools.")
    assert Run.objects.get().state == "finished"


def test_named_method_without_the_wish_waits_for_nothing(model: Model) -> None:
    launch_run(model)
    assert not Probe.objects.exists()
    assert run_worker_session(model) == 3


@pytest.mark.parametrize("cap", ["request_cap", "token_cap"])
def test_named_method_of_a_run_with_a_cap_waits_for_nothing(model: Model, cap: str) -> None:
    launch_run(model, probe_unknown=True, **{cap: 100_000})
    assert not Probe.objects.exists()
    assert run_worker_session(model) == 3


def test_auto_of_a_run_with_a_cap_waits_for_the_probe(model: Model) -> None:
    launch_run(model, methods=("auto",), request_cap=100)
    assert Probe.objects.exists()


def test_named_method_of_a_known_model_waits_for_nothing(model: Model) -> None:
    Model.objects.filter(pk=model.pk).update(capabilities={"supports_tool_use": True})
    launch_run(model, probe_unknown=True)
    assert not Probe.objects.exists()
    assert run_worker_session(model) == 3


def test_inconclusive_probe_leaves_native_and_next_launch_probes_again(model: Model) -> None:
    with ScriptedServer(lambda seen: error_reply(429, "slow down")) as provider:
        answered_by(model, provider)
        run = launch_run(model, methods=("auto",))
        config = settled(model, run)

    assert (config.method, config.routing["reason"]) == ("native", "Nothing is known against tool calls.")
    launch_run(model, methods=("auto",))
    assert Probe.objects.count() == 2


def test_what_is_declared_decides_at_once_and_nobody_is_asked(model: Model) -> None:
    model.capabilities = {"supports_tool_use": False, "constrained": ["response_format"]}
    model.save()
    config = launch_run(model, methods=("auto",)).configs.get()

    assert config.method == "constrained"
    assert ["routing", {"method": "constrained", "constraint": "response_format"}] in config.layers
    assert not Probe.objects.exists()


def test_an_order_of_paths_in_the_run_is_followed(model: Model) -> None:
    model.capabilities = {"supports_tool_use": False, "constrained": ["response_format"]}
    model.save()

    assert build_plan(build_request(model, methods=("auto",), overrides={"paths": ["text_json"]})).configs[
        0
    ].method == ("text_json")


def test_where_no_path_is_left_preflight_says_so_before_the_first_request(model: Model) -> None:
    model.capabilities = {"supports_tool_use": False}
    model.save()
    plan = build_plan(build_request(model, methods=("auto", "text_json"), overrides={"paths": ["native"]}))

    assert [config.method for config in plan.configs] == ["text_json"]
    assert plan.skipped[0].why.startswith("No method is left")


def test_trials_without_possible_method_are_not_applicable_with_reason(model: Model) -> None:
    with ScriptedServer(refuses_tools) as provider:
        answered_by(model, provider)
        run = launch_run(model, methods=("auto",), overrides={"paths": ["native"]})
        config = settled(model, run)

    trial = run.trials.first()
    assert trial is not None
    assert config.method == "none"
    assert (trial.state, trial.outcome, trial.failure_class) == ("done", "na", "no_path")
    assert trial.sentence.startswith("No method is left")


def test_named_method_is_used_or_refused_with_reason_but_never_changed(model: Model) -> None:
    model.capabilities = {"supports_tool_use": False, "tools_field": "accepted"}
    model.save()
    assert build_plan(build_request(model)).configs[0].method == "native"

    model.capabilities = {"tools_field": "refused"}
    model.save()
    plan = build_plan(build_request(model, methods=("native", "text_json")))
    assert [config.method for config in plan.configs] == ["text_json"]
    assert plan.skipped[0].why == "The endpoint refuses requests with tools."


def test_rendered_prompt_is_refused_before_request_if_wire_has_none(model: Model) -> None:
    model.provider.wire = "anthropic"
    model.provider.save()
    plan = build_plan(build_request(model, methods=("native", "template")))

    assert [config.method for config in plan.configs] == ["native"]
    assert plan.skipped[0].why == "An endpoint that speaks anthropic takes no rendered prompt."


def test_endpoint_without_parallel_calls_gets_single_calls_except_raw(model: Model) -> None:
    model.capabilities = {"supports_tool_use": True, "supports_parallel_tools": False}
    model.save()
    plan = build_plan(build_request(model, strategies=("baseline", "raw")))
    layers = [dict(config.layers).get("capability declared by a person") for config in plan.configs]

    assert layers == [{"request_overrides": {"parallel_tool_calls": False}}, None]


def test_tools_that_the_endpoint_would_refuse_are_left_out_with_the_reason(model: Model) -> None:
    model.capabilities = {"name_pattern": "^x"}
    model.save()
    plan = build_plan(build_request(model, methods=("native", "text_json")))

    assert [config.method for config in plan.configs] == ["text_json"]
    assert plan.skipped[0].why == "The endpoint does not take the name state_get: it wants ^x."


def test_a_lost_wake_up_is_made_good_and_settling_twice_changes_nothing(model: Model) -> None:
    run = launch_run(model, methods=("auto",))
    Probe.objects.update(state="done", ok=True, learned={"supports_tool_use": True})

    assert decide_all_waiting_methods() == 1
    assert decide_waiting_methods(model.pk) == 0
    assert run.configs.get().method == "native"


def test_settings_of_another_version_end_only_their_own_trials(
    model: Model,
) -> None:
    old, good = launch_run(model, methods=("auto",)), launch_run(model, methods=("auto",))
    old.configs.update(layers=[["launch", {}], ["profile", {"a_key_of_before": 1}]])
    Probe.objects.update(state="done", ok=True, learned={"supports_tool_use": True})

    assert decide_all_waiting_methods() == 2
    assert (old.configs.get().method, good.configs.get().method) == ("none", "native")
    trial = old.trials.first()
    assert trial is not None
    assert (trial.state, trial.outcome) == ("done", "na")
    assert trial.sentence.startswith("The settings of the run are no longer valid: profile: a_key_of_before")


def test_configuration_that_cannot_be_read_leaves_the_others(model: Model) -> None:
    bad, good = launch_run(model, methods=("auto",)), launch_run(model, methods=("auto",))
    bad.configs.update(layers=[["a layer without a patch"]])
    Probe.objects.update(state="done", ok=True, learned={"supports_tool_use": True})

    assert decide_all_waiting_methods() == 2
    assert (bad.configs.get().method, good.configs.get().method) == ("none", "native")
    trial = bad.trials.first()
    assert trial is not None
    assert (trial.state, trial.outcome) == ("done", "na")
    assert trial.sentence.startswith("Toolbench itself failed (ValueError)")


def test_model_that_cannot_be_settled_leaves_the_others(
    model: Model, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(other: Model) -> EffectiveCapabilities:
        if other == model:
            raise KeyError("injected")
        return get_model_capabilities(other)

    good = make_scripted_model(scripted, "another")
    waiting, settled_run = launch_run(model, methods=("auto",)), launch_run(good, methods=("auto",))
    Probe.objects.update(state="done", ok=True, learned={"supports_tool_use": True})
    monkeypatch.setattr(auto_method, "get_model_capabilities", failing)

    assert decide_all_waiting_methods() == 1
    assert (waiting.configs.get().method, settled_run.configs.get().method) == ("auto", "native")
    assert JobFailure.objects.get().job == "choosing methods after a probe"
