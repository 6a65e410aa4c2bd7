"""The process of BFCL's simulated classes.

This file is run by its path in isolated mode and imports no Toolbench module. The process writes the line `ready`, then
reads and writes one JSON object per line. The input has these members:

- `classes`: the names of the classes; `config`: the initial state of each class, by its name;
- `long`: whether the initial state has the irrelevant content of the cases of long context;
- `states`: whether to return the states;
- `turns`: the turns, each a list of calls [name, arguments].

The output is {turns: [{results: [{text, failed}], state}]}; `state` has the state of each class after the turn, or is
empty if it was not requested. Every line is run on new instances, so that no state of an earlier line remains. A call
can only reach public methods of the named classes; no text is evaluated.

A state is JSON in which an object {"$": kind, "of": ...} stands for a value that JSON cannot represent, such as a set.
Of files and folders, a state has only the fields that BFCL compares.
"""

import copy
import importlib
import inspect
import json
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any

MODULE_BY_CLASS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
READY_LINE = "ready"
_SOURCE_PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_COMPARED_FIELDS: Mapping[str, tuple[str, ...]] = {"File": ("name", "content"), "Directory": ("name", "contents")}
_STATELESS_CLASS = "MathAPI"
_MAX_MEMORY_BYTES = 2 * 1024**3


def main() -> None:
    """Write the ready line, then answer each line of the standard input."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    output = sys.stdout
    sys.stdout = sys.stderr  # what the classes print must not get into the output
    output.write(f"{READY_LINE}\n")
    output.flush()
    for line in sys.stdin:
        output.write(f"{json.dumps(_run_turns(json.loads(line)))}\n")
        output.flush()


def _run_turns(request: dict[str, Any]) -> dict[str, Any]:
    instances = {name: _build_instance(name, request) for name in request["classes"]}
    methods: dict[str, Callable[..., Any]] = {}
    for instance in instances.values():
        members = inspect.getmembers(instance, predicate=inspect.ismethod)
        methods |= {name: method for name, method in members if not name.startswith("_")}
    turns = []
    for calls in request["turns"]:
        results = [_run_call(methods, name, arguments) for name, arguments in calls]
        states = {name: _read_state(instance) for name, instance in instances.items()} if request["states"] else {}
        turns.append({"results": results, "state": states})
    return {"turns": turns}


def _build_instance(name: str, request: dict[str, Any]) -> Any:
    """Return a new instance of a class with its initial state.

    Raises:
        KeyError: The class is not in MODULE_BY_CLASS.
    """
    instance = getattr(importlib.import_module(f"{_SOURCE_PACKAGE}.{MODULE_BY_CLASS[name]}"), name)()
    if name != _STATELESS_CLASS:
        config = copy.deepcopy(request["config"].get(name, {}))
        instance._load_scenario(config, long_context=request["long"])
    return instance


def _run_call(methods: Mapping[str, Callable[..., Any]], name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a method, and return its result or its exception as the text that BFCL compares."""
    if name not in methods:
        return {"text": f"Error during execution: name {name!r} is not defined", "failed": True}
    try:
        value = methods[name](**arguments)
    except Exception as error:
        return {"text": f"Error during execution: {error}", "failed": True}
    return {"text": _render_result(value), "failed": False}


def _render_result(value: Any) -> str:
    if isinstance(value, dict):
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            return str(value)
    return str(value)


def _read_state(instance: Any) -> dict[str, Any]:
    """Return the public attributes of an instance as JSON."""
    return {name: _to_json(value) for name, value in vars(instance).items() if not name.startswith("_")}


def _to_json(value: Any) -> Any:
    """Return a value as JSON, in which objects with `$` preserve Python's types.

    Raises:
        TypeError: The type is not supported.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and key != "$" for key in value):
            return {key: _to_json(item) for key, item in value.items()}
        return {"$": "dict", "of": [[_to_json(key), _to_json(item)] for key, item in value.items()]}
    if isinstance(value, (tuple, set)):
        return {"$": type(value).__name__, "of": [_to_json(item) for item in value]}
    kind = type(value).__name__
    if kind in _COMPARED_FIELDS:
        return {"$": kind, "of": {name: _to_json(getattr(value, name)) for name in _COMPARED_FIELDS[kind]}}
    raise TypeError(f"a {kind} in the state")


if __name__ == "__main__":
    main()
