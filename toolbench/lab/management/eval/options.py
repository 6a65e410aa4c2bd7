"""Table of the options of `manage.py eval`, and of the environment variables that set their defaults.

The names of the variables are those of the case study. The flags of the command are derived from this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from toolbench.engine.policy.keys import normalise_name
from toolbench.engine.policy.settings import TOOL_USE_MODE_ALIASES
from toolbench.engine.types import JsonObject
from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.lab.endpoints.connect import MAX_CONCURRENCY
from toolbench.lab.library.values import parse_value
from toolbench.lab.query_params import MAX_ID

VARIABLE_PREFIX = "OPENROUTER_"
FULL_PROFILES = "default,recommended,conversation,creative,tool_calling"
ALL_STRATEGIES = "raw,baseline,production"

# Defaults of a full evaluation, which OPENROUTER_EVAL_PRESET (full or all) or OPENROUTER_FULL (1) selects.
FULL_DEFAULTS: Mapping[str, str] = {
    "trials": "10",
    "models": "all",
    "profiles": FULL_PROFILES,
    "scenarios": "all",
    "strategies": ALL_STRATEGIES,
}
# Variables of the case study that have no effect, without VARIABLE_PREFIX, with the reason.
UNUSED_VARIABLES: Mapping[str, str] = {
    "HTTP_ADAPTER": "there is one HTTP client",
    "LANGUAGE_POLICY_FILTER": "language policies are not part of these scenarios",
    "LANGUAGE_POLICY_MATRIX": "language policies are not part of these scenarios",
    "LANGUAGE_POLICY_STRICT": "language policies are not part of these scenarios",
    "RUN_LANGUAGE_POLICY_EVAL": "language policies are not part of these scenarios",
    "EMPTY_RESPONSE_RETRY_COUNT": "repeating a request with an empty answer would be a second sample",
    "PRODUCTION_AUTO_SAMPLING_PROFILE": "a chosen profile is never replaced by another",
}
_FULL_PRESETS = ("full", "all")
_REPLACES_PROFILE_VALUE = "replaces the value of the profile"
_ON_WORDS, _OFF_WORDS = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class OptionError(Exception):
    """Option that cannot be parsed; the message names the option and what it accepts."""


@dataclass(frozen=True, slots=True)
class OptionKind:
    """Kind of an option's value.

    Attributes:
        accepts: description of the accepted texts.
        parse: parses a text; raises ValueError if it is not accepted.
        metavar: name of the value in the help.
        is_switch: whether the option has a flag for on and one for off instead of a value.
    """

    accepts: str
    parse: Callable[[str], Any]
    metavar: str
    is_switch: bool = False


@dataclass(frozen=True, slots=True)
class OptionRow:
    """Row of the table: one option.

    Attributes:
        name: name of the field of EvalOptions.
        help: description of the option in the help of the command.
        variable: name of the case study's variable without VARIABLE_PREFIX; empty if it has none.
    """

    name: str
    kind: OptionKind
    help: str
    variable: str

    @property
    def flag(self) -> str:
        """Flag on the command line."""
        return f"--{self.name.replace('_', '-')}"

    def parse_value(self, text: str, source: str) -> Any:
        """Parse the value of the option.

        Args:
            text: the value as text.
            source: the flag or variable, for the message of an error.

        Raises:
            OptionError: the text is not accepted.
        """
        try:
            return self.kind.parse(text.strip())
        except ValueError:
            raise OptionError(f"{source} must be {self.kind.accepts}, not {text[:80]!r}.") from None


def _parse_switch(text: str) -> bool:
    if text.lower() not in (*_ON_WORDS, *_OFF_WORDS):
        raise ValueError
    return text.lower() in _ON_WORDS


def _parse_object(text: str) -> JsonObject:
    value = parse_value(text)
    if not isinstance(value, dict):
        raise ValueError
    return value


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a comma-separated list without outer white space; blank words are left out."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _parse_rule(text: str) -> JsonObject:
    """Parse a stopping rule such as `width,width=15,error=0.1` to the JSON of a StoppingRule."""
    name, *values = split_words(text)
    rule: JsonObject = {}
    for value in values:
        key, _, number = value.partition("=")
        rule[key.strip()] = number.strip() if key.strip() == "rate" else float(number)
    return StoppingRule.from_json({"rule": name, **rule}).to_json()


def _build_number_kind(
    number_type: type[int] | type[float], accepts: str, metavar: str, minimum: int = -MAX_ID, maximum: int = MAX_ID
) -> OptionKind:
    """Return the kind of numbers from `minimum` to `maximum`, which excludes NaN and infinity."""

    def parse_number(text: str) -> float:
        if not minimum <= (number := number_type(text)) <= maximum:
            raise ValueError
        return number

    return OptionKind(accepts, parse_number, metavar)


def _build_choice_kind(*names: str) -> OptionKind:
    def parse_choice(text: str) -> str:
        word = normalise_name(text)
        if word not in names:
            word = TOOL_USE_MODE_ALIASES.get(word, word)
        if word not in names:
            raise ValueError
        return word

    return OptionKind(f"one of {', '.join(names)}", parse_choice, "|".join(names))


TEXT = OptionKind("a text", str, "TEXT")
FILTER = OptionKind("a comma-separated list of words", str, "WORDS")
WORDS = OptionKind("a comma-separated list of names", split_words, "NAMES")
COUNT = _build_number_kind(int, "a whole number from 1", "N", 1)
RETRIES = _build_number_kind(int, "a whole number from 0", "N", 0)
JOBS = _build_number_kind(int, f"a whole number from 1 to {MAX_CONCURRENCY:,}", "N", 1, MAX_CONCURRENCY)
WHOLE = _build_number_kind(int, "a whole number", "N")
NUMBER = _build_number_kind(float, "a number", "X")
SECONDS = _build_number_kind(float, "a number of seconds (0 or less: no limit)", "SECONDS")
PERCENT = _build_number_kind(float, "a percentage between 0 and 100", "PERCENT", 0, 100)
OBJECT = OptionKind('a JSON object, such as {"max_turns": 6}', _parse_object, "JSON")
RULE = OptionKind("a rule such as threshold, or threshold,target=90,error=0.05,rate=delivered", _parse_rule, "RULE")
SWITCH = OptionKind("1 or 0", _parse_switch, "", is_switch=True)
MODE = _build_choice_kind("enforced", "relaxed", "disabled")
POLICY = _build_choice_kind("fatal", "tolerated")
INSTANCES = _build_choice_kind("parity", "drawn")
STREAM = _build_choice_kind("none", "streamed", "both")


def _build_metadata(kind: OptionKind, help_text: str, variable: str = "") -> dict[str, Any]:
    """Return the metadata of a field of EvalOptions, from which its OptionRow is built."""
    return {"kind": kind, "help": help_text, "variable": variable}


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """Values of all options. None means that an option without a default was not given."""

    models: str = field(
        default="stable",
        metadata=_build_metadata(
            FILTER, "models: names, vendors, tags, globs, !word to leave out, all", "MODEL_FILTER"
        ),
    )
    provider: str = field(
        default="",
        metadata=_build_metadata(
            FILTER, "providers, selected in the same way; default: all except simulated and local ones"
        ),
    )
    profiles: str = field(
        default="default",
        metadata=_build_metadata(FILTER, "sampling profiles: names, tags, all", "SAMPLING_PROFILE_FILTER"),
    )
    enforce_applicability: bool = field(
        default=True,
        metadata=_build_metadata(
            SWITCH, "use a profile only with the models that it applies to", "SAMPLING_PROFILE_ENFORCE_APPLICABILITY"
        ),
    )
    strategies: str = field(
        default="production",
        metadata=_build_metadata(FILTER, "raw, baseline, production, wire_standard, all, presets", "STRATEGY_FILTER"),
    )
    strategy_matrix: bool = field(
        default=False, metadata=_build_metadata(SWITCH, "use baseline and production", "STRATEGY_MATRIX")
    )
    method: tuple[str, ...] = field(
        default=("native",),
        metadata=_build_metadata(WORDS, "how calls are requested: auto, native, text_json, template, constrained"),
    )
    probe: bool = field(
        default=True,
        metadata=_build_metadata(SWITCH, "first probe models with unknown tool support, with 2 to 5 requests each"),
    )
    stream: str = field(
        default="none",
        metadata=_build_metadata(STREAM, "whether answers are streamed; both: each configuration runs both ways"),
    )
    tag_fallback: bool = field(
        default=False,
        metadata=_build_metadata(
            SWITCH, "parse calls between tags in the text of every model", "ENABLE_CONTENT_TAG_TOOL_CALL_FALLBACK"
        ),
    )
    fallback_matrix: bool = field(
        default=False,
        metadata=_build_metadata(SWITCH, "use every strategy without the tag fallback and with it", "FALLBACK_MATRIX"),
    )
    scenarios: str = field(
        default="typical",
        metadata=_build_metadata(
            FILTER, "simple, typical, extreme, all, slugs, or set:NAME for a set of test cases", "SCENARIOS"
        ),
    )
    trials: int = field(default=1, metadata=_build_metadata(COUNT, "trials per cell", "TRIALS"))
    until_decided: JsonObject | None = field(
        default=None,
        metadata=_build_metadata(
            RULE,
            "sequential stopping: run each cell until it is decided, at most --trials times; threshold, width or best",
        ),
    )
    instances: str = field(
        default="parity",
        metadata=_build_metadata(INSTANCES, "parity: published wording or a fixed list; drawn: new for each trial"),
    )
    seed: int | None = field(
        default=None, metadata=_build_metadata(WHOLE, "seed of instances, order and sampling; default: random")
    )
    jobs: int | None = field(default=None, metadata=_build_metadata(JOBS, "trials in flight for each provider", "JOBS"))
    timeout: float | None = field(
        default=None,
        metadata=_build_metadata(SECONDS, "timeout for one answer, unless --read-timeout is given", "CLIENT_TIMEOUT"),
    )
    open_timeout: float | None = field(
        default=None, metadata=_build_metadata(SECONDS, "timeout for a connection", "CLIENT_OPEN_TIMEOUT")
    )
    read_timeout: float | None = field(
        default=None, metadata=_build_metadata(SECONDS, "timeout for one answer", "CLIENT_READ_TIMEOUT")
    )
    deadline: float | None = field(
        default=None, metadata=_build_metadata(NUMBER, "time limit of a trial in seconds, including back-off")
    )
    tool_use_mode: str = field(
        default="enforced",
        metadata=_build_metadata(
            MODE, "enforced: a trial without a call fails; relaxed: it may pass; disabled: no tools", "TOOL_USE_MODE"
        ),
    )
    failure_policy: str = field(
        default="fatal",
        metadata=_build_metadata(
            POLICY, "enforced: fail if a tool's last call (fatal) or all calls (tolerated) fail", "TOOL_FAILURE_POLICY"
        ),
    )
    allow: tuple[str, ...] = field(
        default=(),
        metadata=_build_metadata(WORDS, "the only tools that are offered, or all", "TOOL_ALLOWLIST"),
    )
    deny: tuple[str, ...] = field(default=(), metadata=_build_metadata(WORDS, "tools that are not offered"))
    fallback_retries: int | None = field(
        default=None,
        metadata=_build_metadata(
            RETRIES,
            "relaxed mode: 1 or more: repeat a request once without tools if the endpoint cannot use them; 0: never",
            "TOOL_CALLING_FALLBACK_RETRY_COUNT",
        ),
    )
    fix_empty_final: bool | None = field(
        default=None, metadata=_build_metadata(SWITCH, "re-prompt if the final answer is empty", "FIX_EMPTY_FINAL")
    )
    overrides: JsonObject | None = field(
        default=None, metadata=_build_metadata(OBJECT, "policy patch that overrides everything except the scenario")
    )
    request_overrides: JsonObject | None = field(
        default=None,
        metadata=_build_metadata(OBJECT, "object merged into the body of every request", "REQUEST_OVERRIDES_JSON"),
    )
    llm_options: JsonObject | None = field(
        default=None,
        metadata=_build_metadata(OBJECT, "sampling options that override the profile", "LLM_OPTIONS_DEFAULTS_JSON"),
    )
    temperature: float | None = field(
        default=None, metadata=_build_metadata(NUMBER, _REPLACES_PROFILE_VALUE, "TEMPERATURE")
    )
    top_p: float | None = field(default=None, metadata=_build_metadata(NUMBER, _REPLACES_PROFILE_VALUE, "TOP_P"))
    top_k: int | None = field(default=None, metadata=_build_metadata(WHOLE, _REPLACES_PROFILE_VALUE, "TOP_K"))
    min_p: float | None = field(default=None, metadata=_build_metadata(NUMBER, _REPLACES_PROFILE_VALUE, "MIN_P"))
    route: str = field(default="", metadata=_build_metadata(TEXT, "OpenRouter's route", "ROUTE"))
    transforms: str = field(
        default="", metadata=_build_metadata(TEXT, "OpenRouter's transforms: auto, none, or a comma list", "TRANSFORMS")
    )
    provider_only: tuple[str, ...] = field(
        default=(), metadata=_build_metadata(WORDS, "OpenRouter: the only upstreams to use", "PROVIDER_ONLY")
    )
    provider_order: tuple[str, ...] = field(
        default=(), metadata=_build_metadata(WORDS, "OpenRouter: upstreams in order", "PROVIDER_ORDER")
    )
    provider_ignore: tuple[str, ...] = field(
        default=(), metadata=_build_metadata(WORDS, "OpenRouter: upstreams not to use", "PROVIDER_IGNORE")
    )
    request_cap: int | None = field(default=None, metadata=_build_metadata(COUNT, "pause at this number of requests"))
    token_cap: int | None = field(default=None, metadata=_build_metadata(COUNT, "pause at this number of tokens"))
    title: str = field(default="", metadata=_build_metadata(TEXT, "the run's title"))
    key: str = field(
        default="",
        metadata=_build_metadata(TEXT, "with --server: idempotency key; a command with the same key waits for its run"),
    )
    fail_under: float | None = field(
        default=None,
        metadata=_build_metadata(PERCENT, "exit with 1 if the answered success of a cell is below this percentage"),
    )
    baseline: int | None = field(
        default=None,
        metadata=_build_metadata(COUNT, "id of a run: exit with 1 if a cell is significantly worse than in that run"),
    )
    junit: str = field(default="", metadata=_build_metadata(TEXT, "write the cells and gates to this file as JUnit"))
    markdown: str = field(default="", metadata=_build_metadata(TEXT, "write a summary to this file as Markdown"))
    out: str = field(default="", metadata=_build_metadata(TEXT, "write the report to this folder", "REPORT_DIR"))


OPTIONS: Mapping[str, OptionRow] = {
    option.name: OptionRow(option.name, **option.metadata) for option in fields(EvalOptions)
}


def parse_options(arguments: Mapping[str, str | bool], environment: Mapping[str, str]) -> EvalOptions:
    """Parse the options of the command line and of the environment.

    Args:
        arguments: options of the command line by name, which take precedence over the environment.
        environment: environment variables.

    Raises:
        OptionError: a value is not accepted.
    """
    from_arguments = {name: _parse_argument(row, arguments[name]) for name, row in OPTIONS.items() if name in arguments}
    from_environment = {
        row.name: row.parse_value(environment[VARIABLE_PREFIX + row.variable], VARIABLE_PREFIX + row.variable)
        for row in OPTIONS.values()
        if row.variable and environment.get(VARIABLE_PREFIX + row.variable, "").strip()
    }
    if _is_full_preset(environment):
        full_defaults = {name: OPTIONS[name].parse_value(text, name) for name, text in FULL_DEFAULTS.items()}
        from_environment = {**full_defaults, **from_environment, "strategy_matrix": False}
    if "strategies" in from_arguments:
        from_environment.pop("strategy_matrix", None)  # the matrix would replace the strategies
    return EvalOptions(**{**from_environment, **from_arguments})


def list_unused_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for every variable that is set and has no effect."""
    return tuple(
        f"{VARIABLE_PREFIX}{name} is set and has no effect: {reason}."
        for name, reason in UNUSED_VARIABLES.items()
        if environment.get(VARIABLE_PREFIX + name, "").strip()
    )


def _parse_argument(row: OptionRow, argument: str | bool) -> Any:
    return argument if isinstance(argument, bool) else row.parse_value(argument, row.flag)


def _is_full_preset(environment: Mapping[str, str]) -> bool:
    """Return whether the environment selects the defaults for a full evaluation.

    Raises:
        OptionError: the variable of the preset has an unknown value.
    """
    preset = environment.get(f"{VARIABLE_PREFIX}EVAL_PRESET", "").strip().lower()
    if preset not in ("", *_FULL_PRESETS):
        raise OptionError(
            f"{VARIABLE_PREFIX}EVAL_PRESET must be one of {', '.join(_FULL_PRESETS)}, not {preset[:80]!r}."
        )
    return bool(preset) or environment.get(f"{VARIABLE_PREFIX}FULL", "").strip() == "1"
