"""Both rates of a configuration, over everything, the tool scenarios and the controls, as a report writes them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolbench.engine.messages import JsonObject
from toolbench.lab.models import Cell, RunConfig
from toolbench.lab.rates import Rate, without_repeats
from toolbench.lab.tallies import Tally, tally


@dataclass(frozen=True, slots=True)
class ConfigRates:
    """Sums of one configuration's cells. `deterministic`: temperature 0, so that repeats need not be independent."""

    overall: Tally
    tools: Tally
    control: Tally
    deterministic: bool

    def answered(self, sums: Tally) -> Rate:
        """Success given an answer; its interval is withheld where a deterministic endpoint repeats itself."""
        rate = sums.given_an_answer()
        return without_repeats(rate) if self.deterministic else rate

    def plain(self) -> JsonObject:
        parts = {"overall": self.overall, "tools": self.tools, "control": self.control}
        return {
            name: {
                "success_given_an_answer": rate_json(self.answered(sums)),
                "delivered_success": rate_json(sums.delivered()),
                "infrastructure": sums.infra,
                "not_applicable": sums.not_applicable,
                "cancelled": sums.cancelled,
                "distinct_answers": sums.distinct,
            }
            for name, sums in parts.items()
        }


def config_rates(config: RunConfig, cells: Iterable[Cell]) -> ConfigRates:
    own = [cell for cell in cells if cell.config_id == config.pk]
    return rates_of(own, deterministic=temperature(config) == 0)


def rates_of(cells: Sequence[Cell], *, deterministic: bool = False) -> ConfigRates:
    return ConfigRates(
        overall=tally(cells),
        tools=tally(cell for cell in cells if not cell.control),
        control=tally(cell for cell in cells if cell.control),
        deterministic=deterministic,
    )


def temperature(config: RunConfig) -> object:
    """What the frozen layers ask for, None for nothing. A request override stands above the defaults."""
    asked: dict[str, object] = {}
    for _, patch in config.layers:
        for key in ("llm_options_defaults", "request_overrides"):
            if "temperature" in (patch.get(key) or {}):
                asked[key] = patch[key]["temperature"]
    return asked.get("request_overrides", asked.get("llm_options_defaults"))


def rate_json(rate: Rate) -> JsonObject:
    """k of n with the 95 % Wilson interval; null where nothing was tried, or where no interval may be claimed."""
    share = round(rate.k / rate.n, 4) if rate.n else None
    known = bool(rate.n) and not rate.withheld
    ends = {"low": round(rate.low, 4), "high": round(rate.high, 4)} if known else {"low": None, "high": None}
    return {"k": rate.k, "n": rate.n, "rate": share, **ends}
