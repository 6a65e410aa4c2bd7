"""The scenario that needs one call of get_weather, short enough for a small model."""

from toolbench.engine.types import JsonObject
from toolbench.evals.data_files import read_table
from toolbench.evals.scenarios.seeded_draws import SeededDraws
from toolbench.evals.scenarios.single_call import ONE_TURN_LAYER, ExpectedSingleCall, SingleCallScenario
from toolbench.evals.scenarios.tools import build_definition, load_distractors
from toolbench.evals.scenarios.wording import fill_placeholders
from toolbench.evals.tool_faults import FaultyTools
from toolbench.evals.types import DRAWN, PUBLISHED_WORDING, Instance, Workspace


class WeatherScenario(SingleCallScenario):
    """The scenario in which the model is asked about the weather in a city.

    With PUBLISHED_WORDING the seed selects one of twelve cities, so that repeats differ, and the wordings are the first
    ones. A drawn instance has a random city, random wordings and up to two distractor tools.
    """

    slug = "weather"
    version = 1
    title = "weather: one call"
    group = "weather"
    intent = "Ask about the weather in a city: one call of get_weather with that city."

    def draw_instance(self, seed: int, *, kind: str = DRAWN) -> Instance:
        """Return the instance of a seed."""
        texts = _read_texts()
        draw = SeededDraws.from_seed(self.slug, seed, plain=kind == PUBLISHED_WORDING)
        city = (
            texts["cities"][seed % texts["parity_cities"]]
            if kind == PUBLISHED_WORDING
            else draw.choice(texts["cities"])
        )
        distractors = [tool for tool, _ in draw.draw_sample(list(load_distractors().values()), limit=2)]
        return Instance(
            scenario=self.slug,
            version=self.version,
            kind=kind,
            seed=seed,
            system=draw.choice(texts["system"]),
            user_text=fill_placeholders(draw.choice(texts["user_text"]), {"city": city}),
            tools=tuple(draw.shuffle([build_definition(texts["tool"]), *distractors])),
            layer=dict(ONE_TURN_LAYER),
            values={"city": city},
        )

    def build_expected_call(self, instance: Instance) -> ExpectedSingleCall:
        """Return the call that names the city of the instance."""
        return ExpectedSingleCall("get_weather", "city", instance.values["city"], loose=True)

    def open(self, instance: Instance) -> Workspace:
        """Return a new workspace of the tools with their fixed answers."""
        weather = {"city": instance.values["city"], **_read_texts()["answer"]}
        distractor_answers = {name: answer for name, (_, answer) in load_distractors().items()}
        return FaultyTools({**distractor_answers, "get_weather": weather})


def _read_texts() -> JsonObject:
    texts: JsonObject = read_table("weather")
    return texts
