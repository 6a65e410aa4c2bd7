"""The simulated tools of a test case. The user's real tools are never run.

A tool returns {"simulated": true, "arguments": …} with the arguments of the call, unless the case's `results` have an
entry under the tool's name with one of these members:

- {"fixed": value}: the same answer every time
- {"template": value}: an answer with placeholders (templates.py)
- {"generated": JSON Schema}: an answer generated from that schema
- {"error": message}: a refusal

An entry without `error` may also have {"set": {pointer: value}}, which changes the case's state; `{name}` in a pointer
and the text `$name` as a value stand for the argument `name`. It may also have {"fault": {"kind": …}}, which makes the
tool fail or answer late (fault_rows.py).
"""

import copy
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from jsonpointer import JsonPointer

from toolbench.engine.types import JsonObject
from toolbench.evals.json_patch import PatchError, parse_index
from toolbench.evals.json_pointers import is_pointer
from toolbench.evals.tool_faults import DelayedAnswer, run_fault
from toolbench.evals.user_cases.fault_rows import iter_fault_problems
from toolbench.evals.user_cases.options import WORKSPACE_TOOLS
from toolbench.evals.user_cases.templates import TemplateError, iter_template_problems, render_template
from toolbench.evals.workspace import StateWorkspace, build_refusal

RESULT_KINDS = ("fixed", "template", "generated", "error")
_SAMPLE_BY_TYPE = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "null": None}
_MAX_SAMPLE_DEPTH = 12
_POINTER_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class SimulatedTools:
    """The tools of one execution of a test case, and the state that they change.

    Args:
        results: The entries of the tools, by the tool's name.
        initial: The initial state.
        workspace: {id, writable}, if `state_get` and `state_patch` work on the state's `draft` as in the case study;
            else None or {}. An entry of `results` for one of the two tools takes precedence.
    """

    def __init__(self, results: JsonObject, initial: JsonObject, workspace: JsonObject | None = None) -> None:
        self._results = results
        self._state: JsonObject = copy.deepcopy(initial)
        self._call_counts: Counter[str] = Counter()
        self._workspace = _open_workspace(workspace, self._state) if workspace else None

    def call(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Return the tool's answer, and change the state by the tool's entry.

        A refusal and a fault do not change the state. A slow tool changes the state at once and answers later. An
        answer with a member `ok` is returned as the data of a successful envelope, so that the loop does not read the
        answer itself as an envelope.

        Raises:
            ToolArgumentError: The workspace or a fault refuses the arguments.
            RuntimeError: The tool's fault is a crash.
        """
        entry = self._results.get(name, {})
        if self._workspace and not entry and name in WORKSPACE_TOOLS:
            return self._workspace.call(name, arguments, call_id)
        if "error" in entry:
            return build_refusal(name, "ARGUMENT_ERROR", entry["error"])
        self._call_counts[name] += 1
        fault = {"tool": name, **entry["fault"]} if "fault" in entry else None
        try:
            state = self._build_state(entry, arguments)
            answer = _wrap_data(_build_answer(entry, arguments, state))
        except TemplateError as error:
            answer, state = build_refusal(name, error.code, str(error)), self.snapshot()
        except PatchError as error:
            answer, state = build_refusal(name, "STATE_NOT_FOUND", str(error)), self.snapshot()
        result = run_fault(fault, arguments, self._call_counts[name], answer)
        if result is answer or isinstance(result, DelayedAnswer):
            self._set_state(state)
        return result

    def snapshot(self) -> JsonObject:
        """Return a copy of the state. The members of a workspace replace those with the same names."""
        return copy.deepcopy(self._state) | (self._workspace.snapshot() if self._workspace else {})

    def _build_state(self, entry: JsonObject, arguments: JsonObject) -> JsonObject:
        """Return a copy of the state after the changes of a call.

        Raises:
            PatchError: A pointer names an index that a list of the state does not have.
        """
        state = self.snapshot()
        for pointer, value in entry.get("set", {}).items():
            _set_value(state, _fill_pointer(pointer, arguments), _build_value(value, arguments))
        return state

    def _set_state(self, state: JsonObject) -> None:
        self._state = state
        if self._workspace:
            self._workspace.draft = state["draft"]


def _open_workspace(workspace: JsonObject, state: JsonObject) -> StateWorkspace:
    draft = state.get("draft")
    return StateWorkspace(
        workspace["id"], writable=workspace["writable"], draft=draft if isinstance(draft, dict) else {}
    )


def get_data(answer: object) -> object:
    """Return an answer of `SimulatedTools.call` without the envelope of a success; a refusal is returned unchanged."""
    return answer["data"] if isinstance(answer, dict) and answer.get("ok") is True else answer


def _wrap_data(value: object) -> object:
    """Return the value, in a successful envelope if the loop would read the value itself as an envelope."""
    return {"ok": True, "data": value} if isinstance(value, dict) and "ok" in value else value


def _build_answer(entry: JsonObject, arguments: JsonObject, state: JsonObject) -> object:
    """Return the answer of a tool that does not fail.

    Args:
        entry: The tool's entry in the case's results; empty for a tool that returns its arguments.
        arguments: The call's arguments.
        state: The state after the call.

    Raises:
        TemplateError: The template cannot be rendered.
    """
    if "fixed" in entry:
        return copy.deepcopy(entry["fixed"])
    if "template" in entry:
        return render_template(entry["template"], arguments, state)
    return build_sample(entry["generated"]) if "generated" in entry else {"simulated": True, "arguments": arguments}


def describe_results(results: JsonObject, tool: str) -> str:
    """Return a description of what a tool returns, for the page of a case."""
    entry = results.get(tool, {})
    if "error" in entry:
        return "refuses every call"
    labels = {
        "fixed": "a fixed result",
        "template": "a template, filled from arguments and state",
        "generated": "generated from a schema",
    }
    description = next((label for kind, label in labels.items() if kind in entry), "returns its arguments")
    description = f"{description}, and changes the state" if "set" in entry else description
    return f"{description}, after a fault ({entry['fault']['kind']})" if "fault" in entry else description


def iter_result_problems(results: Any, tool_names: Collection[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each mistake in the results, as its path and a sentence.

    Args:
        results: The results of a case, any JSON value.
        tool_names: The names of the case's tools.
    """
    if not isinstance(results, Mapping):
        yield (), "Results must be an object whose keys are names of tools."
        return
    for name, entry in results.items():
        if name not in tool_names:
            yield (name,), f"There is no tool {name} in this test case."
        if not isinstance(entry, Mapping) or not entry or set(entry) - {*RESULT_KINDS, "set", "fault"}:
            yield (
                (name,),
                "A tool's result must be an object with at least one member. It may have one of fixed, template, "
                "generated and error; set, which changes the state; and fault.",
            )
        elif sum(kind in entry for kind in RESULT_KINDS) > 1:
            yield (name,), "Only one of fixed, template, generated and error is allowed."
        else:
            yield from _iter_entry_problems(name, entry)


def _iter_entry_problems(name: str, entry: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(entry.get("error", ""), str):
        yield (name, "error"), "error takes a text."
    if not isinstance(entry.get("generated", {}), Mapping):
        yield (name, "generated"), "generated takes a JSON Schema."
    yield from (((name, "template"), message) for message in iter_template_problems(entry.get("template")))
    if "fault" in entry:
        yield from (((name, "fault", *place), message) for place, message in iter_fault_problems(entry["fault"]))
    if "fault" in entry and "error" in entry:
        yield (name, "fault"), "A tool that always refuses has no fault: remove error or fault."
    changes = entry.get("set", {})
    if not isinstance(changes, Mapping) or not all(is_pointer(pointer) for pointer in changes):
        yield (name, "set"), "set takes an object whose keys are JSON Pointers, such as /orders/17/status."


def build_sample(schema: Any, depth: int = 0) -> Any:
    """Return an example value of a JSON Schema, always the same one.

    It is the schema's const, default or first enum value, else a value of its type. Values nested more than
    _MAX_SAMPLE_DEPTH levels deep, and values of a schema that is not an object, are None. An `enum` that is not a list
    and `properties` that are not an object are ignored.

    Args:
        schema: The schema, any JSON value.
        depth: The number of values that contain this one.
    """
    if not isinstance(schema, Mapping) or depth > _MAX_SAMPLE_DEPTH:
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    enum, properties = schema.get("enum"), schema.get("properties")
    if isinstance(enum, list) and enum:
        return enum[0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        members = properties if isinstance(properties, Mapping) else {}
        return {name: build_sample(child, depth + 1) for name, child in members.items()}
    if kind == "array":
        return [build_sample(schema.get("items", {}), depth + 1)]
    return _SAMPLE_BY_TYPE.get(str(kind), "text")


def _fill_pointer(pointer: str, arguments: JsonObject) -> str:
    """Return the JSON Pointer with every `{name}` replaced by the argument `name`, whose `~` and `/` are escaped.

    A `{name}` that names no argument is kept, and so is a `{name}` within the value of an argument.
    """

    def render_argument(placeholder: re.Match[str]) -> str:
        if placeholder[1] not in arguments:
            return placeholder[0]
        return str(arguments[placeholder[1]]).replace("~", "~0").replace("/", "~1")

    return _POINTER_PLACEHOLDER.sub(render_argument, pointer)


def _build_value(value: Any, arguments: JsonObject) -> Any:
    """Return a copy of the value; a text `$name` becomes the argument `name`, or None if the call does not have it."""
    if isinstance(value, str) and value.startswith("$"):
        value = arguments.get(value[1:])
    return copy.deepcopy(value)


def _set_value(state: JsonObject, pointer: str, value: Any) -> None:
    """Set the value at a JSON Pointer; a parent that is missing or neither object nor list becomes an object.

    Raises:
        PatchError: The pointer names an index that a list does not have.
    """
    *parents, last = JsonPointer(pointer).parts
    container: Any = state
    for part in parents:
        key = _find_key(container, part)
        child = container.get(key) if isinstance(container, dict) else container[key]
        if not isinstance(child, (dict, list)):
            child = container[key] = {}
        container = child
    container[_find_key(container, last)] = value


def _find_key(container: JsonObject | list[Any], part: str) -> Any:
    """Return the key of an object, or the index of a list, that a part of a JSON Pointer names.

    Raises:
        PatchError: The list does not have this index.
    """
    return part if isinstance(container, dict) else parse_index(container, part)
