"""One call of get_weather for a city: small enough for a tiny model, wide enough to tell six ways of asking apart."""

from toolbench.engine.events import Ended
from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.policy import METHODS
from toolbench.evals.data_files import read_table
from toolbench.evals.expected_calls import Due
from toolbench.evals.scenarios import single_call
from toolbench.evals.scenarios.seeded_draws import Draw
from toolbench.evals.scenarios.tools import definition, distractors
from toolbench.evals.scenarios.wording import fill
from toolbench.evals.types import DRAWN, PARITY, Instance, Verdict, Workspace
from toolbench.evals.workspace import FixedAnswers


class Weather:
    """The parity instance asks in the first wording about the city at `seed` in a fixed list, so that repeats differ;
    a drawn one draws city, wording and other tools."""

    slug = "weather"
    version = 1
    title = "weather: one call"
    group = "weather"
    intent = "Ask about the weather in a city: one call of get_weather with that city."
    control = False
    public = True
    methods: tuple[str, ...] = METHODS
    straight_requests = 1

    def draw(self, seed: int, *, kind: str = DRAWN) -> Instance:
        texts = _texts()
        draw = Draw.of(self.slug, seed, plain=kind == PARITY)
        city = texts["cities"][seed % texts["parity_cities"]] if kind == PARITY else draw.choice(texts["cities"])
        others = [tool for tool, _ in draw.some(list(distractors().values()), most=2)]
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(texts["system"]),
            user_text=fill(draw.choice(texts["user_text"]), {"city": city}),
            tools=tuple(draw.shuffled([definition(texts["tool"]), *others])),
            layer=dict(single_call.ONE_TURN),
            values={"city": city},
        )

    def due(self, instance: Instance) -> Due:
        return _wanted(instance).due

    def open(self, instance: Instance) -> Workspace:
        answer = {"city": instance.values["city"], **_texts()["answer"]}
        fixed = {name: answer for name, (_, answer) in distractors().items()}
        return FixedAnswers({**fixed, "get_weather": answer})

    def judge(self, instance: Instance, ended: Ended, workspace: Workspace) -> Verdict:
        return single_call.judge(instance, ended, _wanted(instance))


def _wanted(instance: Instance) -> single_call.Wanted:
    return single_call.Wanted("get_weather", "city", instance.values["city"], loose=True)


def _texts() -> JsonObject:
    texts: JsonObject = read_table("weather")
    return texts
