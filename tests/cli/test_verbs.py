"""The command `toolbench`: its list of verbs, and the programs that they call."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolbench.cli.verbs import VERBS
from toolbench.installation import ROOT


def _run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "toolbench.cli", *arguments]
    environment = {**os.environ, "COLUMNS": "200", **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_command_without_a_verb_lists_every_verb() -> None:
    printed = _run()

    assert printed.returncode == 2
    assert [name for name in VERBS if f"\n  {name} " not in printed.stdout] == []


def test_unknown_verb_is_refused_with_the_known_ones() -> None:
    printed = _run("evaluate")

    assert printed.returncode == 2
    assert "invalid choice: 'evaluate'" in printed.stderr
    assert "local-model" in printed.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["up", "--help"], "--no-local-model"),
        (["eval", "--help"], "usage: toolbench eval"),
        (["probe", "--help"], "usage: toolbench probe"),
        (["import", "run", "--help"], "usage: toolbench import_bundle"),
        (["export", "otlp", "--help"], "usage: toolbench export_otlp"),
        (["manage", "rejudge", "--help"], "usage: toolbench rejudge"),
        (["local-model", "--help"], "usage: toolbench local-model"),
    ],
)
def test_verb_has_help(arguments: list[str], expected: str) -> None:
    printed = _run(*arguments)

    assert printed.returncode == 0
    assert expected in printed.stdout


def test_verb_without_a_running_instance_says_how_to_start_one(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    command = [sys.executable, "-m", "toolbench.cli", "worker"]
    printed = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "TOOLBENCH_VAR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert printed.returncode == 1
    assert "start it with `make up`" in printed.stderr


def test_refused_request_has_the_exit_code_of_the_management_command() -> None:
    printed = _run("eval", "--trials", "none")

    assert printed.returncode == 2
    assert "--trials must be a whole number from 1" in printed.stderr


def test_option_of_up_is_checked_like_its_variable(tmp_path: Path) -> None:
    printed = _run("up", "--port", "http", "--var", str(tmp_path))

    assert printed.returncode == 1
    assert "PORT must be a number from 1 to 65535, not 'http'." in printed.stderr
