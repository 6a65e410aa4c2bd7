"""Requests to BFCL's checker, which runs in a separate process."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.bfcl.cases import BfclCase, NotInstalledError, is_installed
from toolbench.evals.bfcl.golden_answers import BfclCall

_CHECKER_COMMAND = (sys.executable, "-m", "toolbench.evals.bfcl.checker_process")


@dataclass(frozen=True, slots=True)
class CheckerVerdict:
    """The checker's verdict on one answer.

    Attributes:
        error: The checker's errors, joined by "; ", or its exception as text; "" for a valid answer.
    """

    valid: bool
    error: str = ""


def check_answers(answers: Sequence[tuple[BfclCase, Sequence[BfclCall]]]) -> tuple[CheckerVerdict, ...]:
    """Return a verdict for each answer to a case, in order.

    Raises:
        NotInstalledError: BFCL is not installed.
        RuntimeError: The checker's process failed.
    """
    return check_lines([_render_line(case, calls) for case, calls in answers])


def check_lines(lines: Sequence[str]) -> tuple[CheckerVerdict, ...]:
    """Return a verdict for each line of input of the checker's process, in order.

    checker_process.py describes the lines. Equal lines are judged once.

    Raises:
        NotInstalledError: BFCL is not installed.
        RuntimeError: The checker's process failed.
    """
    if not is_installed():
        raise NotInstalledError
    unique_lines = list(dict.fromkeys(lines))
    run = subprocess.run(_CHECKER_COMMAND, input="\n".join(unique_lines), capture_output=True, text=True, check=False)
    verdict_lines = run.stdout.splitlines()
    if run.returncode or len(verdict_lines) != len(unique_lines):
        raise RuntimeError(f"BFCL's checker failed: {run.stderr[-500:]}")
    verdicts = [CheckerVerdict(**json.loads(line)) for line in verdict_lines]
    verdicts_by_line = dict(zip(unique_lines, verdicts, strict=True))
    return tuple(verdicts_by_line[line] for line in lines)


def _render_line(case: BfclCase, calls: Sequence[BfclCall]) -> str:
    return json.dumps({"category": case.category, "functions": case.functions, "calls": calls, "answers": case.answers})
