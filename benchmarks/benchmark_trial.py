"""Trial of the loop benchmark: happy_path in the published wording and in strategy production."""

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
    """Scenario, instance and loop plan of the trial."""

    scenario: Scenario
    instance: Instance
    plan: LoopPlan


def build_trial() -> BenchmarkTrial:
    """Return the trial; each call returns an equal one."""
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


def list_request_bodies(trial: BenchmarkTrial) -> tuple[bytes, ...]:
    """Return the bodies of the requests that the trial sends, in order."""
    workspace = trial.scenario.open(trial.instance)
    loop = run_loop(trial.plan, ignore_event)
    answers = iter(TRIAL_ANSWERS)
    bodies: list[bytes] = []
    event = next(loop)
    try:
        while True:
            outcome: LoopInput
            if isinstance(event, Ask):
                bodies.append(event.request.body)
                event.decoder.feed(next(answers))
                outcome = event.decoder.close()
            else:
                outcome = tuple(Outcome(workspace.call(call.name, call.arguments, call.id)) for call in event.calls)
            event = loop.send(outcome)
    except StopIteration:
        return tuple(bodies)


def ignore_event(event: Event) -> None:
    """Do nothing with an event of the loop."""
