"""BFCL's own checker as a process: `python -m toolbench.evals.bfcl.checker`.

A line of JSON in (category, functions, calls, answers), a line out (valid, error). Its table of models, whose import
would pull in the clients of thirty vendors, is replaced by one entry that changes no names."""

import importlib
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

MODEL = "golden"
_TABLE = "bfcl_eval.constants.model_config"


def main() -> None:
    table = ModuleType(_TABLE)
    vars(table)["MODEL_CONFIG_MAPPING"] = {MODEL: SimpleNamespace(underscore_to_dot=False)}
    sys.modules[_TABLE] = table
    check = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    python = importlib.import_module("bfcl_eval.constants.enums").Language.PYTHON
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(json.dumps(_verdict(check, python, asked)) + "\n")


def _verdict(check: Any, python: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """What the checker says; what it raises over is not valid."""
    calls = [{name: arguments} for name, arguments in asked["calls"]]
    try:
        said = check(asked["functions"], calls, asked["answers"], python, asked["category"], MODEL)
    except Exception as error:
        return {"valid": False, "error": f"the checker failed: {type(error).__name__}: {error}"}
    return {"valid": said["valid"], "error": str(said["error"])[:500]}


if __name__ == "__main__":
    main()
