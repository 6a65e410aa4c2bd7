"""One call of get_weather for a city: small enough for a tiny model, and able to distinguish six methods."""

from toolbench.engine.events import LoopResult
from toolbench.engine.policy.settings import METHODS
from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import read_table
from toolbench.evals.expected_calls import ExpectedCalls
from toolbench.evals.scenarios import single_call
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.tools import build_definition, load_distractors
from toolbench.evals.scenarios.wording import fill_placeholders
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Verdict, Workspace
from toolbench.evals.workspace import FixedAnswerTools


class WeatherScenario:
    """A question about the weather in a city.

    The published instance has the first wording and the city at `seed` in a fixed list, so that repeats differ; a drawn
    one draws city, wording and other tools.
    """

    slug = "weather"
    version = 1
    title = "weather: one call"
    group = "weather"
    intent = "Ask about the weather in a city: one call of get_weather with that city."
    control = False
    public = True
    methods: tuple[str, ...] = METHODS
    straight_requests = 1

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed."""
        texts = _read_texts()
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        city = (
            texts["cities"][seed % texts["parity_cities"]]
            if kind == PUBLISHED_WORDING
            else draw.choice(texts["cities"])
        )
        others = [tool for tool, _ in draw.draw_some(list(load_distractors().values()), most=2)]
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(texts["system"]),
            user_text=fill_placeholders(draw.choice(texts["user_text"]), {"city": city}),
            tools=tuple(draw.shuffle([build_definition(texts["tool"]), *others])),
            layer=dict(single_call.ONE_TURN_LAYER),
            values={"city": city},
        )

    def build_expected_calls(self, instance: Instance) -> ExpectedCalls:
        """Return the one right call."""
        return _build_expected_call(instance).to_expected_calls()

    def open(self, instance: Instance) -> Workspace:
        """Return the tools with their fixed answers."""
        answer = {"city": instance.values["city"], **_read_texts()["answer"]}
        fixed = {name: answer for name, (_, answer) in load_distractors().items()}
        return FixedAnswerTools({**fixed, "get_weather": answer})

    def judge(self, instance: Instance, ended: LoopResult, workspace: Workspace) -> Verdict:
        """Return the verdict on the first answer."""
        return single_call.judge(instance, ended, _build_expected_call(instance))


def _build_expected_call(instance: Instance) -> single_call.ExpectedSingleCall:
    return single_call.ExpectedSingleCall("get_weather", "city", instance.values["city"], loose=True)


def _read_texts() -> JsonObject:
    texts: JsonObject = read_table("weather")
    return texts
