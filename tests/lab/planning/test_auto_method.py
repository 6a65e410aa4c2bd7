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

TAGGED_CALL = '<tool_call>{"name": "probe_echo", "arguments": {"value": "x"}}</tool_call>'
CALL = '```json\n{"name": "state_get", "arguments": {}}\n```'


def answer_probes_and_tasks(seen: ReceivedRequest) -> ScriptedReply:
    body = seen.json()
    tools = [tool["function"]["name"] for tool in body.get("tools", ())]
    if tools != ["probe_echo"]:
        return answer_correctly(seen)
    has_tool_result = body["messages"][-1]["role"] == "tool"
    return text_reply("It gave it back.") if has_tool_result else tool_call_reply(("probe_echo", {"value": "x"}))


def refuse_tools(seen: ReceivedRequest) -> ScriptedReply:
    return error_reply(400, "this model does not support tools") if seen.json().get("tools") else text_reply(CALL)


@pytest.fixture
def model(scripted: ScriptedServer) -> Model:
    return make_scripted_model(scripted)


def run_waiting_probe(model: Model, run: Run) -> RunConfig:
    probe = Probe.objects.get(model=model)
    assert run_probe(probe.pk, on_finished=decide_waiting_methods)
    return RunConfig.objects.get(run=run)


def point_model_to(model: Model, provider: ScriptedServer) -> None:
    model.provider.base_url = provider.base_url
    model.provider.save()


def test_auto_method_of_unknown_model_waits_for_probe(model: Model) -> None:
    run = launch_run(model, methods=("auto",))

    assert run.configs.get().method == "auto"
    assert Probe.objects.get().why == f"Run {run.pk} uses this model for the first time."
    assert run_worker_session(model, seconds=0.5) == 0  # nothing is claimed yet


def test_auto_method_is_native_after_probe_with_call(model: Model) -> None:
    with ScriptedServer(answer_probes_and_tasks) as provider:
        point_model_to(model, provider)
        run = launch_run(model, methods=("auto",))
        config = run_waiting_probe(model, run)
        assert run_worker_session(model) == 3

    assert (config.method, config.routing["reason"]) == ("native", "Tool calls are supported.")
    assert ["routing", {"method": "native"}] in config.layers
    assert set(Trial.objects.values_list("outcome", flat=True)) == {"pass"}


def test_auto_method_is_text_json_if_tools_are_refused(model: Model) -> None:
    with ScriptedServer(refuse_tools) as provider:
        point_model_to(model, provider)
        run = launch_run(model, methods=("auto",))
        config = run_waiting_probe(model, run)

    assert config.method == "text_json"
    assert config.routing["deprecated"] is True
    assert config.routing["passed"][0] == {"method": "native", "why": "The endpoint refuses requests with tools."}
    assert config.routing["known"]["tools_field"]["source"] == "probed"


def test_named_method_with_probe_unknown_waits_and_keeps_its_method(model: Model) -> None:
    with ScriptedServer(answer_probes_and_tasks) as provider:
        point_model_to(model, provider)
        run = launch_run(model, probe_unknown=True)
        assert run.configs.get().awaits_probe
        assert run_worker_session(model, seconds=0.5) == 0
        config = run_waiting_probe(model, run)
        assert run_worker_session(model) == 3

    assert (config.method, config.routing, config.awaits_probe) == ("native", {}, False)
    assert (config.support["value"], config.support["source"]) == (True, "probed")
    assert Run.objects.get().state == "finished"


@pytest.mark.parametrize("method", ["native", "auto"])
def test_config_after_its_probe_has_the_settings_of_the_next_plan(model: Model, method: str) -> None:
    request = build_request(model, methods=(method,), probe_unknown=True)
    with ScriptedServer(lambda _: text_reply(TAGGED_CALL)) as provider:
        point_model_to(model, provider)
        run = launch_run(model, methods=(method,), probe_unknown=True)
        config = run_waiting_probe(model, run)

    (planned,) = build_plan(request).configs
    assert dict(config.layers[0][1])["text_format"] == "hermes"
    assert (config.policy_hash, config.method) == (planned.policy_hash, planned.method)


def test_named_method_refused_by_probe_is_not_applicable(model: Model) -> None:
    with ScriptedServer(refuse_tools) as provider:
        point_model_to(model, provider)
        run = launch_run(model, probe_unknown=True)
        config = run_waiting_probe(model, run)
        run_worker_session(model, seconds=0.5)

    assert config.method == "native"
    trial = Trial.objects.filter(run=run)[0]
    assert (trial.outcome, trial.sentence) == ("na", "The endpoint refuses requests with tools.")
    assert Run.objects.get().state == "finished"


def test_named_method_without_probe_unknown_does_not_wait(model: Model) -> None:
    launch_run(model)
    assert not Probe.objects.exists()
    assert run_worker_session(model) == 3


@pytest.mark.parametrize("cap", ["request_cap", "token_cap"])
def test_named_method_of_run_with_limit_does_not_wait(model: Model, cap: str) -> None:
    launch_run(model, probe_unknown=True, **{cap: 100_000})
    assert not Probe.objects.exists()
    assert run_worker_session(model) == 3


def test_auto_method_of_run_with_limit_waits_for_probe(model: Model) -> None:
    launch_run(model, methods=("auto",), request_cap=100)
    assert Probe.objects.exists()


def test_named_method_of_known_model_does_not_wait(model: Model) -> None:
    Model.objects.filter(pk=model.pk).update(capabilities={"supports_tool_use": True})
    launch_run(model, probe_unknown=True)
    assert not Probe.objects.exists()
    assert run_worker_session(model) == 3


def test_auto_method_after_inconclusive_probe_is_native(model: Model) -> None:
    with ScriptedServer(lambda seen: error_reply(429, "slow down")) as provider:
        point_model_to(model, provider)
        run = launch_run(model, methods=("auto",))
        config = run_waiting_probe(model, run)

    assert (config.method, config.routing["reason"]) == ("native", "Nothing is known against tool calls.")
    launch_run(model, methods=("auto",))
    assert Probe.objects.count() == 2


def test_auto_method_of_declared_capabilities_needs_no_probe(model: Model) -> None:
    model.capabilities = {"supports_tool_use": False, "constrained": ["response_format"]}
    model.save()
    config = launch_run(model, methods=("auto",)).configs.get()

    assert config.method == "constrained"
    assert ["routing", {"method": "constrained", "constraint": "response_format"}] in config.layers
    assert not Probe.objects.exists()


def test_auto_method_follows_paths_of_run(model: Model) -> None:
    model.capabilities = {"supports_tool_use": False, "constrained": ["response_format"]}
    model.save()

    assert build_plan(build_request(model, methods=("auto",), overrides={"paths": ["text_json"]})).configs[
        0
    ].method == ("text_json")


def test_build_plan_skips_auto_without_possible_method(model: Model) -> None:
    model.capabilities = {"supports_tool_use": False}
    model.save()
    plan = build_plan(build_request(model, methods=("auto", "text_json"), overrides={"paths": ["native"]}))

    assert [config.method for config in plan.configs] == ["text_json"]
    assert plan.skipped[0].why.startswith("No method is left")


def test_auto_method_without_possible_path_is_not_applicable(model: Model) -> None:
    with ScriptedServer(refuse_tools) as provider:
        point_model_to(model, provider)
        run = launch_run(model, methods=("auto",), overrides={"paths": ["native"]})
        config = run_waiting_probe(model, run)

    trial = run.trials.first()
    assert trial is not None
    assert config.method == "none"
    assert (trial.state, trial.outcome, trial.failure_class) == ("done", "na", "no_path")
    assert trial.sentence.startswith("No method is left")


def test_build_plan_uses_or_skips_named_method_without_changing_it(model: Model) -> None:
    model.capabilities = {"supports_tool_use": False, "tools_field": "accepted"}
    model.save()
    assert build_plan(build_request(model)).configs[0].method == "native"

    model.capabilities = {"tools_field": "refused"}
    model.save()
    plan = build_plan(build_request(model, methods=("native", "text_json")))
    assert [config.method for config in plan.configs] == ["text_json"]
    assert plan.skipped[0].why == "The endpoint refuses requests with tools."


def test_build_plan_skips_template_method_on_anthropic_wire(model: Model) -> None:
    model.provider.wire = "anthropic"
    model.provider.save()
    plan = build_plan(build_request(model, methods=("native", "template")))

    assert [config.method for config in plan.configs] == ["native"]
    assert plan.skipped[0].why == (
        "The method template needs the API OpenAI chat completions; the provider has Anthropic Messages."
    )


def test_build_plan_without_parallel_support_sends_single_calls(model: Model) -> None:
    model.capabilities = {"supports_tool_use": True, "supports_parallel_tools": False}
    model.save()
    plan = build_plan(build_request(model, strategies=("baseline", "raw")))
    layers = [dict(config.layers).get("capability declared by a person") for config in plan.configs]

    assert layers == [{"request_overrides": {"parallel_tool_calls": False}}, None]


def test_build_plan_skips_native_if_tool_name_is_not_accepted(model: Model) -> None:
    model.capabilities = {"name_pattern": "^x"}
    model.save()
    plan = build_plan(build_request(model, methods=("native", "text_json")))

    assert [config.method for config in plan.configs] == ["text_json"]
    assert plan.skipped[0].why == "The endpoint accepts only tool names that match ^x, unlike state_get."


def test_decide_all_waiting_methods_recovers_lost_notification(model: Model) -> None:
    run = launch_run(model, methods=("auto",))
    Probe.objects.update(state="done", ok=True, learned={"supports_tool_use": True})

    assert decide_all_waiting_methods() == 1
    assert decide_waiting_methods(model.pk) == 0
    assert run.configs.get().method == "native"


def test_decide_all_waiting_methods_ends_trials_of_invalid_settings(
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


def test_decide_all_waiting_methods_ends_unreadable_config_only(model: Model) -> None:
    broken, good = launch_run(model, methods=("auto",)), launch_run(model, methods=("auto",))
    broken.configs.update(layers=[["a layer without a patch"]])
    Probe.objects.update(state="done", ok=True, learned={"supports_tool_use": True})

    assert decide_all_waiting_methods() == 2
    assert (broken.configs.get().method, good.configs.get().method) == ("none", "native")
    trial = broken.trials.first()
    assert trial is not None
    assert (trial.state, trial.outcome) == ("done", "na")
    assert trial.sentence.startswith("Toolbench itself failed (ValueError)")


def test_decide_all_waiting_methods_continues_after_failed_model(
    model: Model, scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_for_model(other: Model) -> EffectiveCapabilities:
        if other == model:
            raise KeyError("injected")
        return get_model_capabilities(other)

    good = make_scripted_model(scripted, "another")
    waiting, settled_run = launch_run(model, methods=("auto",)), launch_run(good, methods=("auto",))
    Probe.objects.update(state="done", ok=True, learned={"supports_tool_use": True})
    monkeypatch.setattr(auto_method, "get_model_capabilities", fail_for_model)

    assert decide_all_waiting_methods() == 1
    assert (waiting.configs.get().method, settled_run.configs.get().method) == ("auto", "native")
    assert JobFailure.objects.get().job == "choosing methods after a probe"
