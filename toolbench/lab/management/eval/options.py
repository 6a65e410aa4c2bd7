"""What `manage.py eval` can be asked, as one table: every option with the variable of the case study that gives its
default. The command's flags, the reading of variables and the documentation's list are made from it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.engine.policy.keys import spelled
from toolbench.engine.policy.policy import MODE_ALIASES
from toolbench.evals.statistics.stopping import Until

PREFIX = "OPENROUTER_"
FIVE_TAGS = "default,recommended,conversation,creative,tool_calling"
ALL_STRATEGIES = "raw,baseline,production"

# What OPENROUTER_EVAL_PRESET=full fills in where nothing else was said.
FULL: Mapping[str, str] = {
    "trials": "10",
    "models": "all",
    "profiles": FIVE_TAGS,
    "scenarios": "all",
    "strategies": ALL_STRATEGIES,
}
# Variables of the case study that decide nothing here, and why.
SET_ASIDE: Mapping[str, str] = {
    "HTTP_ADAPTER": "there is one HTTP client",
    "LANGUAGE_POLICY_FILTER": "language policies are not part of these scenarios",
    "LANGUAGE_POLICY_MATRIX": "language policies are not part of these scenarios",
    "LANGUAGE_POLICY_STRICT": "language policies are not part of these scenarios",
    "RUN_LANGUAGE_POLICY_EVAL": "language policies are not part of these scenarios",
    "EMPTY_RESPONSE_RETRY_COUNT": "a second try after an answer would be a second sample",
    "PRODUCTION_AUTO_SAMPLING_PROFILE": "profiles are tried as asked, none is put in another's place",
}
_FULL_PRESETS = ("full", "all")
_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class OptionRefused(Exception):
    """An option that cannot be read; its text says which and what is accepted."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a word is read; `read` raises ValueError for what `accepts` does not cover."""

    accepts: str
    read: Callable[[str], Any]
    metavar: str
    switch: bool = False


@dataclass(frozen=True, slots=True)
class OptionRow:
    """One option. `variable` has no prefix; blank where the case study has none."""

    name: str
    kind: Kind
    help: str
    variable: str

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def value(self, text: str, source: str) -> Any:
        try:
            return self.kind.read(text.strip())
        except (ValueError, RecursionError):
            raise OptionRefused(f"{source} must be {self.kind.accepts}, not {text[:80]!r}.") from None


def _switch(text: str) -> bool:
    if text.lower() not in (*_ON, *_OFF):
        raise ValueError
    return text.lower() in _ON


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _zero_or_more(text: str) -> int:
    if int(text) < 0:
        raise ValueError
    return int(text)


def _object(text: str) -> JsonObject:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError
    return value


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _rule(text: str) -> JsonObject:
    """`width,width=15,error=0.1` as evals.statistics.stopping.Until has it."""
    name, *values = _words(text)
    said: JsonObject = {}
    for value in values:
        key, _, number = value.partition("=")
        said[key.strip()] = number.strip() if key.strip() == "rate" else float(number)
    return Until.read({"rule": name, **said}).to_json()


def _one_of(*names: str) -> Kind:
    def read(text: str) -> str:
        word = MODE_ALIASES.get(spelled(text), spelled(text))
        if word not in names:
            raise ValueError
        return word

    return Kind(f"one of {', '.join(names)}", read, "|".join(names))


def _percent(text: str) -> float:
    if not 0 <= float(text) <= 100:
        raise ValueError
    return float(text)


TEXT = Kind("a text", str, "TEXT")
FILTER = Kind("a comma list of words", str, "WORDS")
WORDS = Kind("a comma list of names", _words, "NAMES")
COUNT = Kind("a whole number from 1", _count, "N")
RETRIES = Kind("a whole number from 0", _zero_or_more, "N")
WHOLE = Kind("a whole number", int, "N")
NUMBER = Kind("a number", float, "X")
SECONDS = Kind("a number of seconds; 0 or less means none", float, "SECONDS")
PERCENT = Kind("a percentage between 0 and 100", _percent, "PERCENT")
OBJECT = Kind('a JSON object, such as {"max_turns": 6}', _object, "JSON")
RULE = Kind("a rule such as threshold, or threshold,target=90,error=0.05,rate=delivered", _rule, "RULE")
SWITCH = Kind("1 or 0", _switch, "", switch=True)
MODE = _one_of("enforced", "relaxed", "disabled")
POLICY = _one_of("fatal", "tolerated")
INSTANCES = _one_of("parity", "drawn")
STREAM = _one_of("none", "streamed", "both")


def _row(kind: Kind, help: str, variable: str = "") -> dict[str, Any]:
    """The metadata that makes a field of EvalOptions a row of the table."""
    return {"kind": kind, "help": help, "variable": variable}


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What was asked for. None means that nothing was said."""

    models: str = field(
        default="stable",
        metadata=_row(FILTER, "models: names, vendors, tags, globs, !word to leave out, all", "MODEL_FILTER"),
    )
    provider: str = field(
        default="", metadata=_row(FILTER, "providers, the same way; without it all but the simulated and local ones")
    )
    profiles: str = field(
        default="default", metadata=_row(FILTER, "sampling profiles: names, tags, all", "SAMPLING_PROFILE_FILTER")
    )
    enforce_applicability: bool = field(
        default=True,
        metadata=_row(SWITCH, "try a profile only with the models it is for", "SAMPLING_PROFILE_ENFORCE_APPLICABILITY"),
    )
    strategies: str = field(
        default="production", metadata=_row(FILTER, "raw, baseline, production, all, or presets", "STRATEGY_FILTER")
    )
    strategy_matrix: bool = field(default=False, metadata=_row(SWITCH, "baseline and production", "STRATEGY_MATRIX"))
    method: tuple[str, ...] = field(
        default=("native",),
        metadata=_row(WORDS, "how calls are asked for: auto, native, text_json, template, constrained"),
    )
    probe: bool = field(
        default=True,
        metadata=_row(
            SWITCH, "ask models that nobody has declared first whether they call tools, with 2 to 5 requests"
        ),
    )
    stream: str = field(default="none", metadata=_row(STREAM, "whether answers come as a stream; both tries each way"))
    tag_fallback: bool = field(
        default=False,
        metadata=_row(
            SWITCH, "read calls between tags from every model's text", "ENABLE_CONTENT_TAG_TOOL_CALL_FALLBACK"
        ),
    )
    fallback_matrix: bool = field(
        default=False, metadata=_row(SWITCH, "every strategy without the tag fallback and with it", "FALLBACK_MATRIX")
    )
    scenarios: str = field(
        default="typical",
        metadata=_row(FILTER, "simple, typical, extreme, all, slugs, or set:NAME for a set of cases", "SCENARIOS"),
    )
    trials: int = field(default=1, metadata=_row(COUNT, "trials per cell", "TRIALS"))
    until_decided: JsonObject | None = field(
        default=None,
        metadata=_row(
            RULE,
            "go on in every cell until it is decided, at most --trials often: threshold, width or best, with values",
        ),
    )
    instances: str = field(
        default="parity",
        metadata=_row(INSTANCES, "fixed (the published wording where there is one), or drawn anew for every trial"),
    )
    seed: int | None = field(
        default=None, metadata=_row(WHOLE, "of instances, order and sampling; drawn when not given")
    )
    jobs: int | None = field(default=None, metadata=_row(COUNT, "trials in flight at once, for each provider", "JOBS"))
    timeout: float | None = field(
        default=None, metadata=_row(SECONDS, "for one answer, where --read-timeout is not given", "CLIENT_TIMEOUT")
    )
    open_timeout: float | None = field(default=None, metadata=_row(SECONDS, "for a connection", "CLIENT_OPEN_TIMEOUT"))
    read_timeout: float | None = field(default=None, metadata=_row(SECONDS, "for one answer", "CLIENT_READ_TIMEOUT"))
    deadline: float | None = field(default=None, metadata=_row(NUMBER, "seconds for a whole trial, back-off included"))
    tool_use_mode: str = field(
        default="enforced", metadata=_row(MODE, "whether a trial without any call fails", "TOOL_USE_MODE")
    )
    failure_policy: str = field(
        default="fatal", metadata=_row(POLICY, "what a failed tool call does to a trial", "TOOL_FAILURE_POLICY")
    )
    allow: tuple[str, ...] = field(
        default=(), metadata=_row(WORDS, "the only tools offered; all for no mask", "TOOL_ALLOWLIST")
    )
    deny: tuple[str, ...] = field(default=(), metadata=_row(WORDS, "tools not offered"))
    fallback_retries: int | None = field(
        default=None,
        metadata=_row(RETRIES, "relaxed: retries of a turn without tools", "TOOL_CALLING_FALLBACK_RETRY_COUNT"),
    )
    fix_empty_final: bool | None = field(
        default=None, metadata=_row(SWITCH, "ask again for a blank final answer", "FIX_EMPTY_FINAL")
    )
    overrides: JsonObject | None = field(
        default=None, metadata=_row(OBJECT, "a sparse policy patch above everything but the scenario")
    )
    request_overrides: JsonObject | None = field(
        default=None, metadata=_row(OBJECT, "merged into every request's body", "REQUEST_OVERRIDES_JSON")
    )
    llm_options: JsonObject | None = field(
        default=None, metadata=_row(OBJECT, "sampling options above the profile's", "LLM_OPTIONS_DEFAULTS_JSON")
    )
    temperature: float | None = field(default=None, metadata=_row(NUMBER, "above the profile's", "TEMPERATURE"))
    top_p: float | None = field(default=None, metadata=_row(NUMBER, "above the profile's", "TOP_P"))
    top_k: int | None = field(default=None, metadata=_row(WHOLE, "above the profile's", "TOP_K"))
    min_p: float | None = field(default=None, metadata=_row(NUMBER, "above the profile's", "MIN_P"))
    route: str = field(default="", metadata=_row(TEXT, "OpenRouter's route", "ROUTE"))
    transforms: str = field(
        default="", metadata=_row(TEXT, "OpenRouter's transforms: auto, none, or a comma list", "TRANSFORMS")
    )
    provider_only: tuple[str, ...] = field(
        default=(), metadata=_row(WORDS, "OpenRouter: upstreams to use", "PROVIDER_ONLY")
    )
    provider_order: tuple[str, ...] = field(
        default=(), metadata=_row(WORDS, "OpenRouter: upstreams in order", "PROVIDER_ORDER")
    )
    provider_ignore: tuple[str, ...] = field(
        default=(), metadata=_row(WORDS, "OpenRouter: upstreams not to use", "PROVIDER_IGNORE")
    )
    request_cap: int | None = field(default=None, metadata=_row(COUNT, "stop after so many requests"))
    token_cap: int | None = field(default=None, metadata=_row(COUNT, "stop after so many tokens"))
    title: str = field(default="", metadata=_row(TEXT, "the run's title"))
    fail_under: float | None = field(
        default=None, metadata=_row(PERCENT, "exit 1 when a cell's success given an answer is below")
    )
    out: str = field(default="", metadata=_row(TEXT, "write the report into this folder", "REPORT_DIR"))


OPTIONS: Mapping[str, OptionRow] = {
    f.name: OptionRow(f.name, f.metadata["kind"], f.metadata["help"], f.metadata["variable"])
    for f in fields(EvalOptions)
}


def read_options(given: Mapping[str, str | bool], environment: Mapping[str, str]) -> EvalOptions:
    """`given` holds what was said on the command line, by option; it wins over the environment. Raises
    OptionRefused."""
    said = {name: _read(row, given[name], row.flag) for name, row in OPTIONS.items() if name in given}
    found = {
        row.name: row.value(environment[PREFIX + row.variable], PREFIX + row.variable)
        for row in OPTIONS.values()
        if row.variable and environment.get(PREFIX + row.variable, "").strip()
    }
    if _asks_for_all(environment):
        found = {**{name: OPTIONS[name].value(text, name) for name, text in FULL.items()}, **found}
        found["strategy_matrix"] = False
    if "strategies" in said:
        found.pop("strategy_matrix", None)
    return EvalOptions(**{**found, **said})


def set_aside(environment: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for every variable that is set and decides nothing."""
    return tuple(
        f"{PREFIX}{name} is set and not used: {why}."
        for name, why in SET_ASIDE.items()
        if environment.get(PREFIX + name, "").strip()
    )


def _read(row: OptionRow, given: str | bool, source: str) -> Any:
    return given if isinstance(given, bool) else row.value(given, source)


def _asks_for_all(environment: Mapping[str, str]) -> bool:
    preset = environment.get(f"{PREFIX}EVAL_PRESET", "").strip().lower()
    if preset not in ("", *_FULL_PRESETS):
        raise OptionRefused(f"{PREFIX}EVAL_PRESET must be one of {', '.join(_FULL_PRESETS)}, not {preset[:80]!r}.")
    return bool(preset) or environment.get(f"{PREFIX}FULL", "").strip() == "1"
