"""Options of `manage.py eval`: flags, and the variables of the case study."""

from pathlib import Path

import pytest

from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.lab.management.eval.options import (
    FULL_PROFILES,
    OPTIONS,
    VARIABLE_PREFIX,
    EvalOptions,
    OptionError,
    list_unused_variables,
    parse_options,
)

DOCS = Path(__file__).parents[4] / "docs" / "command-line.md"
# Each variable of the case study that has an effect: a text, the option's name and its value.
VARIABLES = {
    "MODEL_FILTER": ("all,!glm", "models", "all,!glm"),
    "SCENARIOS": ("extreme", "scenarios", "extreme"),
    "TRIALS": ("7", "trials", 7),
    "JOBS": ("4", "jobs", 4),
    "TOOL_USE_MODE": ("required", "tool_use_mode", "enforced"),
    "TOOL_FAILURE_POLICY": ("tolerated", "failure_policy", "tolerated"),
    "TOOL_CALLING_FALLBACK_RETRY_COUNT": ("0", "fallback_retries", 0),
    "TOOL_ALLOWLIST": ("state_get, state_patch", "allow", ("state_get", "state_patch")),
    "FIX_EMPTY_FINAL": ("0", "fix_empty_final", False),
    "STRATEGY_FILTER": ("raw,prod", "strategies", "raw,prod"),
    "STRATEGY_MATRIX": ("1", "strategy_matrix", True),
    "SAMPLING_PROFILE_FILTER": ("recommended", "profiles", "recommended"),
    "SAMPLING_PROFILE_ENFORCE_APPLICABILITY": ("0", "enforce_applicability", False),
    "LLM_OPTIONS_DEFAULTS_JSON": ('{"top_k": 3}', "llm_options", {"top_k": 3}),
    "TEMPERATURE": ("0.5", "temperature", 0.5),
    "TOP_P": ("0.9", "top_p", 0.9),
    "TOP_K": ("20", "top_k", 20),
    "MIN_P": ("0", "min_p", 0.0),
    "ENABLE_CONTENT_TAG_TOOL_CALL_FALLBACK": ("1", "tag_fallback", True),
    "FALLBACK_MATRIX": ("1", "fallback_matrix", True),
    "ROUTE": ("fallback", "route", "fallback"),
    "TRANSFORMS": ("none", "transforms", "none"),
    "PROVIDER_ONLY": ("a,b", "provider_only", ("a", "b")),
    "PROVIDER_ORDER": ("b", "provider_order", ("b",)),
    "PROVIDER_IGNORE": ("c", "provider_ignore", ("c",)),
    "REQUEST_OVERRIDES_JSON": ('{"user": "me"}', "request_overrides", {"user": "me"}),
    "CLIENT_TIMEOUT": ("60", "timeout", 60.0),
    "CLIENT_OPEN_TIMEOUT": ("5", "open_timeout", 5.0),
    "CLIENT_READ_TIMEOUT": ("-1", "read_timeout", -1.0),
    "REPORT_DIR": ("out", "out", "out"),
}


@pytest.mark.parametrize("variable", VARIABLES)
def test_parse_options_reads_a_default_from_each_variable(variable: str) -> None:
    text, name, value = VARIABLES[variable]
    assert getattr(parse_options({}, {VARIABLE_PREFIX + variable: text}), name) == value


def test_parse_options_variables_are_all_tested_here() -> None:
    assert set(VARIABLES) == {row.variable for row in OPTIONS.values() if row.variable}


def test_parse_options_without_input_has_the_case_study_defaults() -> None:
    options = parse_options({}, {f"{VARIABLE_PREFIX}TRIALS": " "})
    assert options == EvalOptions()
    assert (options.models, options.trials, options.scenarios, options.profiles) == ("stable", 1, "typical", "default")
    assert (options.strategies, options.tool_use_mode, options.failure_policy) == ("production", "enforced", "fatal")


def test_parse_options_prefers_a_flag_over_its_variable() -> None:
    environment = {
        f"{VARIABLE_PREFIX}TRIALS": "7",
        f"{VARIABLE_PREFIX}FIX_EMPTY_FINAL": "1",
        f"{VARIABLE_PREFIX}STRATEGY_MATRIX": "1",
    }
    options = parse_options({"trials": "2", "fix_empty_final": False, "strategies": "raw"}, environment)
    assert (options.trials, options.fix_empty_final) == (2, False)
    assert (options.strategies, options.strategy_matrix) == ("raw", False)


def test_parse_options_none_has_the_meaning_of_each_option() -> None:
    options = parse_options({"stream": "none", "tool_use_mode": "none"}, {})
    assert (options.stream, options.tool_use_mode) == ("none", "disabled")


def test_parse_options_reads_a_stopping_rule_with_its_parameters() -> None:
    options = parse_options({"until_decided": "threshold, target=80, error=0.1, rate=delivered"}, {})
    assert options.until_decided == StoppingRule("threshold", "delivered", error=0.1, target=80).to_json()


@pytest.mark.parametrize("environment", [{"OPENROUTER_EVAL_PRESET": "full"}, {"OPENROUTER_FULL": "1"}])
def test_parse_options_full_preset_fills_in_missing_options(environment: dict[str, str]) -> None:
    options = parse_options({}, {**environment, "OPENROUTER_TRIALS": "3", "OPENROUTER_STRATEGY_MATRIX": "1"})
    assert (options.trials, options.models, options.profiles, options.scenarios) == (3, "all", FULL_PROFILES, "all")
    assert (options.strategies, options.strategy_matrix) == ("raw,baseline,production", False)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"trials": "0"}, "--trials must be a whole number from 1, not '0'."),
        ({"overrides": "[1]"}, "--overrides must be a JSON object"),
        ({"overrides": "{"}, "--overrides must be a JSON object"),
        ({"overrides": "[" * 100_000}, "--overrides must be a JSON object"),
        ({"tool_use_mode": "sometimes"}, "--tool-use-mode must be one of enforced, relaxed, disabled"),
        ({"fail_under": "101"}, "--fail-under must be a percentage between 0 and 100"),
        ({"until_decided": "luck"}, "--until-decided must be a rule such as threshold"),
        ({"until_decided": "width,width=wide"}, "--until-decided must be a rule such as threshold"),
        ({"temperature": "warm"}, "--temperature must be a number"),
        ({"temperature": "nan"}, "--temperature must be a number"),
        ({"timeout": "inf"}, "--timeout must be a number of seconds"),
        ({"jobs": "1001"}, "--jobs must be a whole number from 1 to 1,000"),
        ({"seed": str(2**63)}, "--seed must be a whole number"),
        ({"overrides": '{"a": NaN}'}, "--overrides must be a JSON object"),
        ({"llm_options": '{"a": "\\u0000"}'}, "--llm-options must be a JSON object"),
    ],
)
def test_parse_options_names_an_invalid_flag(flags: dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionError) as raised:
        parse_options(flags, {})
    assert str(raised.value).startswith(sentence)


def test_parse_options_names_an_invalid_variable() -> None:
    with pytest.raises(OptionError, match="OPENROUTER_JOBS must be a whole number from 1"):
        parse_options({}, {"OPENROUTER_JOBS": "many"})


def test_list_unused_variables_names_variables_without_effect() -> None:
    assert list_unused_variables({"OPENROUTER_HTTP_ADAPTER": "net_http", "OPENROUTER_LANGUAGE_POLICY_STRICT": ""}) == (
        "OPENROUTER_HTTP_ADAPTER is set and has no effect: there is one HTTP client.",
    )


def test_eval_options_and_variables_are_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    missing = [row.flag for row in OPTIONS.values() if f"`{row.flag}" not in text]
    missing += [
        row.variable for row in OPTIONS.values() if row.variable and f"`{VARIABLE_PREFIX}{row.variable}`" not in text
    ]
    assert missing == []
