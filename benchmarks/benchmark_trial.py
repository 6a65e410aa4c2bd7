"""The trial that every way of the benchmark runs: happy_path as the case study words it, under the default layers."""

from dataclasses import dataclass

from benchmarks.trial_answers import TRIAL_ANSWERS
from toolbench.engine.events import Ask, Event, LoopInput, Outcome
from toolbench.engine.loop.run import LoopPlan, run_loop
from toolbench.engine.policy.presets import build_layers
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.evals import scenarios
from toolbench.evals.types import PUBLISHED_WORDING, Instance, Scenario

SCENARIO = "happy_path"
MODEL_NAME = "bench"
STRATEGY = "production"


@dataclass(frozen=True, slots=True)
class BenchmarkTrial:
    scenario: Scenario
    instance: Instance
    plan: LoopPlan


def build_trial() -> BenchmarkTrial:
    scenario = scenarios.lookup_scenario(SCENARIO)
    instance = scenario.draw_instance(1, kind=PUBLISHED_WORDING)
    plan = LoopPlan(
        model=MODEL_NAME,
        policy=resolve_policy(build_layers(STRATEGY)).policy,
        system=instance.system,
        user_text=instance.user_text,
        tools=ToolRegistry(instance.tools),
    )
    return BenchmarkTrial(scenario, instance, plan)


def list_request_bodies(played: BenchmarkTrial) -> tuple[bytes, ...]:
    """The bytes that one trial sends."""
    workspace = played.scenario.open(played.instance)
    loop = run_loop(played.plan, ignore_event)
    answers = iter(TRIAL_ANSWERS)
    sent: list[bytes] = []
    wanted = next(loop)
    try:
        while True:
            outcome: LoopInput
            if isinstance(wanted, Ask):
                sent.append(wanted.request.body)
                wanted.decoder.feed(next(answers))
                outcome = wanted.decoder.close()
            else:
                outcome = tuple(Outcome(workspace.call(call.name, call.arguments, call.id)) for call in wanted.calls)
            wanted = loop.send(outcome)
    except StopIteration:
        return tuple(sent)


def ignore_event(event: Event) -> None:
    """Nobody listens."""
