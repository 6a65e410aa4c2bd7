"""BFCL's checker as a process: `python -m toolbench.evals.bfcl.checker_process`.

It reads and writes one JSON object per line. The output has the members `valid` and `error`. The input has one of two
forms:

- an answer: `category`, `functions`, `calls` ([name, arguments] pairs) and `answers` (the expected answers);
- a conversation: `entry` (the case as BFCL writes it), `answers` (the expected answers) and `turns`. A turn is the list
  of the model's answers, each a list of Python call expressions as text.

BFCL's table of models, whose import would load the clients of thirty vendors, is replaced by one entry that keeps the
dots in function names.
"""

import importlib
import json
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

MODEL_NAME = "golden"
_MODEL_TABLE_MODULE = "bfcl_eval.constants.model_config"
_MULTI_TURN_MODULE = "bfcl_eval.eval_checker.multi_turn_eval"


def main() -> None:
    """Check each line of the standard input, and write the verdict to the standard output."""
    table = ModuleType(_MODEL_TABLE_MODULE)
    vars(table)["MODEL_CONFIG_MAPPING"] = {MODEL_NAME: SimpleNamespace(underscore_to_dot=False)}
    sys.modules[_MODEL_TABLE_MODULE] = table
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps(_run_check(_check_turns if "turns" in request else _check_answer, request)) + "\n")


def _run_check(check: Callable[[dict[str, Any]], dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    """Return the checker's verdict on an answer or a conversation; `valid` is False after an exception."""
    try:
        verdict = check(request)
    except Exception as error:
        return {"valid": False, "error": f"the checker failed: {type(error).__name__}: {error}"}
    errors = verdict.get("error", verdict.get("error_message", ""))
    error_text = "; ".join(map(str, errors)) if isinstance(errors, list) else str(errors)
    return {"valid": verdict["valid"], "error": error_text[:500]}


def _check_answer(request: dict[str, Any]) -> dict[str, Any]:
    check = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON
    calls = [{name: arguments} for name, arguments in request["calls"]]
    verdict: dict[str, Any] = check(
        request["functions"], calls, request["answers"], python, request["category"], MODEL_NAME
    )
    return verdict


def _check_turns(request: dict[str, Any]) -> dict[str, Any]:
    """Check a conversation.

    Then delete the instances that BFCL stored under global names, so that the next conversation starts in a fresh
    state.
    """
    check = importlib.import_module(f"{_MULTI_TURN_MODULE}.multi_turn_checker").multi_turn_checker
    try:
        verdict: dict[str, Any] = check(request["turns"], request["answers"], request["entry"], "", MODEL_NAME)
    finally:
        global_names = vars(importlib.import_module(f"{_MULTI_TURN_MODULE}.multi_turn_utils"))
        for name in [name for name in global_names if name.endswith("_instance")]:
            del global_names[name]
    return verdict


if __name__ == "__main__":
    main()
