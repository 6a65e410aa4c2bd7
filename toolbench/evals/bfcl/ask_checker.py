"""Asking BFCL's own checker, which runs in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.bfcl.cases import Case, NotInstalled, is_installed
from toolbench.evals.bfcl.golden_answers import Call

_COMMAND = (sys.executable, "-m", "toolbench.evals.bfcl.checker_process")


@dataclass(frozen=True, slots=True)
class Checked:
    """`error` is the checker's own sentence."""

    valid: bool
    error: str = ""


def check(answers: Sequence[tuple[Case, Sequence[Call]]]) -> tuple[Checked, ...]:
    """A verdict for each answer to a case, in order. Raises NotInstalled, and RuntimeError when the process fails."""
    return checked([_line(case, calls) for case, calls in answers])


def checked(lines: Sequence[str]) -> tuple[Checked, ...]:
    """A verdict for each line as the checker reads them; lines that are the same are judged once. Raises as above."""
    if not is_installed():
        raise NotInstalled
    unique = list(dict.fromkeys(lines))
    run = subprocess.run(_COMMAND, input="\n".join(unique), capture_output=True, text=True, check=False)
    verdicts = [Checked(**json.loads(line)) for line in run.stdout.splitlines()]
    if run.returncode or len(verdicts) != len(unique):
        raise RuntimeError(f"BFCL's checker failed: {run.stderr[-500:]}")
    by_line = dict(zip(unique, verdicts, strict=True))
    return tuple(by_line[line] for line in lines)


def _line(case: Case, calls: Sequence[Call]) -> str:
    return json.dumps({"category": case.category, "functions": case.functions, "calls": calls, "answers": case.answers})
