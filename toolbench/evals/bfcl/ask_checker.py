"""Asking BFCL's own checker, which runs in a process of its own."""

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
    """`error` is the checker's own sentence."""

    valid: bool
    error: str = ""


def check_answers(answers: Sequence[tuple[BfclCase, Sequence[BfclCall]]]) -> tuple[CheckerVerdict, ...]:
    """A verdict for each answer to a case, in order. Raises NotInstalledError, and RuntimeError when the process
    fails."""
    return check_lines([_render_line(case, calls) for case, calls in answers])


def check_lines(lines: Sequence[str]) -> tuple[CheckerVerdict, ...]:
    """A verdict for each line as the checker reads them; lines that are the same are judged once. Raises as above."""
    if not is_installed():
        raise NotInstalledError
    unique = list(dict.fromkeys(lines))
    run = subprocess.run(_CHECKER_COMMAND, input="\n".join(unique), capture_output=True, text=True, check=False)
    verdicts = [CheckerVerdict(**json.loads(line)) for line in run.stdout.splitlines()]
    if run.returncode or len(verdicts) != len(unique):
        raise RuntimeError(f"BFCL's checker failed: {run.stderr[-500:]}")
    by_line = dict(zip(unique, verdicts, strict=True))
    return tuple(by_line[line] for line in lines)


def _render_line(case: BfclCase, calls: Sequence[BfclCall]) -> str:
    return json.dumps({"category": case.category, "functions": case.functions, "calls": calls, "answers": case.answers})
