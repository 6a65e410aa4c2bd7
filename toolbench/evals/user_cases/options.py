"""Validation of the options of a test case: further messages, group, control, behaviour, workspace, loop settings."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.scenarios.behaviours import BEHAVIOURS
from toolbench.evals.user_cases.definition import TOOL_TIMEOUT
from toolbench.evals.user_cases.number_checks import is_seconds, is_whole_number

MAX_FURTHER_MESSAGES = 20
MAX_TIMEOUT_SECONDS = 60
MAX_COUNT_SETTING = 1_000_000_000
GROUP_PATTERN = re.compile(r"[a-z0-9_]{1,16}", re.ASCII)
WORKSPACE_STATE_KEYS = {"facts", "locks", "ui_state", "versions"}  # all keys of a workspace's state except `draft`
WORKSPACE_TOOLS = ("state_get", "state_patch")
BEHAVIOUR_LABELS: Mapping[str, str] = {
    "mixed_turn": "one message has a successful read and a failed change",
    "id_left_out": "no call passes a workspace_id",
    "ops_refused": "a wrong type of ops is refused",
    "parallel_turn": "two calls come in one message (required)",
    "arguments_too_large": "arguments are refused for their size",
    "output_too_large": "a tool's result is over the size limit",
}
_WORKSPACE_KEY = re.compile(r"[^/~]{1,80}")
OptionProblem = tuple[tuple[str | int, ...], str]  # the path to a mistake in the case, and a sentence about it


def _is_count(value: Any) -> bool:
    return is_whole_number(value, 1, MAX_COUNT_SETTING)


_COUNT_DESCRIPTION = f"a whole number from 1 to {MAX_COUNT_SETTING:,}"
SETTINGS: Mapping[str, tuple[Callable[[Any], bool], str]] = {  # a test and a description of valid values
    "max_tokens": (_is_count, _COUNT_DESCRIPTION),
    "max_tool_args_bytes": (_is_count, _COUNT_DESCRIPTION),
    "max_tool_output_bytes": (_is_count, _COUNT_DESCRIPTION),
    "max_tool_calls_per_turn": (_is_count, _COUNT_DESCRIPTION),
    TOOL_TIMEOUT: (
        lambda value: is_seconds(value, MAX_TIMEOUT_SECONDS),
        f"a number of seconds above 0, up to {MAX_TIMEOUT_SECONDS}",
    ),
    "tool_failure_policy": (lambda value: value in ("fatal", "tolerated"), "fatal or tolerated"),
    "tool_use_mode": (lambda value: value in ("relaxed", "disabled"), "relaxed or disabled"),
}


def build_settings_layer(settings: JsonObject) -> JsonObject:
    """Return the policy patch of a case's settings.

    `max_tokens` becomes a request override. The time limit of tools is left out, because the tool definitions have it.
    """
    layer = {name: value for name, value in settings.items() if name not in ("max_tokens", TOOL_TIMEOUT)}
    if "max_tokens" in settings:
        layer["request_overrides"] = {"max_tokens": settings["max_tokens"]}
    return layer


def iter_option_problems(document: Mapping[str, Any]) -> Iterator[OptionProblem]:
    """Yield each mistake in the options of a case, as its path and a sentence.

    Args:
        document: The whole case.
    """
    yield from _iter_further_problems(document.get("further") or [])
    group = document.get("group") or ""
    if group and not (isinstance(group, str) and GROUP_PATTERN.fullmatch(group)):
        yield ("group",), "A group must have 1 to 16 lower-case letters, digits and underscores."
    behaviour = document.get("behaviour") or ""
    if behaviour and not (isinstance(behaviour, str) and behaviour in BEHAVIOURS):
        yield ("behaviour",), f"behaviour must be one of {', '.join(BEHAVIOURS)}."
    yield from _iter_workspace_problems(document.get("workspace") or {}, document.get("initial") or {})
    yield from _iter_settings_problems(document.get("settings") or {})
    expect = document.get("expect")
    if document.get("control") and not (isinstance(expect, Mapping) and expect.get("no_call")):
        yield ("control",), "A control expects no call: add no_call to the expectations, or set control to false."


def _iter_further_problems(texts: Any) -> Iterator[OptionProblem]:
    if not isinstance(texts, list) or len(texts) > MAX_FURTHER_MESSAGES:
        yield ("further",), f"Further messages must be a list of at most {MAX_FURTHER_MESSAGES} texts."
        return
    for number, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            yield ("further", number), "A further message must be a text that is not blank."


def _iter_workspace_problems(workspace: Any, initial: Any) -> Iterator[OptionProblem]:
    keys = ("id", "writable")
    if not isinstance(workspace, Mapping) or (workspace and set(workspace) != set(keys)):
        yield ("workspace",), "A workspace must be an object with id and writable."
        return
    for key in keys if workspace else ():
        if not isinstance(workspace[key], str) or not _WORKSPACE_KEY.fullmatch(workspace[key]):
            yield ("workspace", key), f"{key} must be a text of 1 to 80 characters without / and ~."
    if not workspace or not isinstance(initial, Mapping):
        return
    if preset_keys := sorted(WORKSPACE_STATE_KEYS & initial.keys()):
        yield (
            ("initial",),
            f"Remove {', '.join(preset_keys)} from initial: a workspace sets these keys itself.",
        )
    if not isinstance(initial.get("draft", {}), Mapping):
        yield ("initial", "draft"), "The draft of a workspace must be an object."


def _iter_settings_problems(settings: Any) -> Iterator[OptionProblem]:
    if not isinstance(settings, Mapping):
        yield ("settings",), f"Settings must be an object with any of {', '.join(SETTINGS)}."
        return
    for name, value in settings.items():
        if name not in SETTINGS:
            yield ("settings", name), f"There is no setting {name}. The settings are {', '.join(SETTINGS)}."
        elif not (isinstance(value, (str, int, float)) and SETTINGS[name][0](value)):
            yield ("settings", name), f"{name} takes {SETTINGS[name][1]}."
