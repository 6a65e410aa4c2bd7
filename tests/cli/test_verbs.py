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


def test_toolbench_without_a_verb_lists_every_verb() -> None:
    result = _run()

    assert result.returncode == 2
    assert [name for name in VERBS if f"\n  {name} " not in result.stdout] == []


def test_toolbench_with_an_unknown_verb_lists_the_known_ones() -> None:
    result = _run("evaluate")

    assert result.returncode == 2
    assert "invalid choice: 'evaluate'" in result.stderr
    assert "local-model" in result.stderr


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
def test_toolbench_verb_has_help(arguments: list[str], expected: str) -> None:
    result = _run(*arguments)

    assert result.returncode == 0
    assert expected in result.stdout


@pytest.mark.parametrize("empty_variables", [{}, {"DATABASE_URL": "", "REDIS_URL": ""}])
def test_toolbench_worker_without_an_instance_says_how_to_start_one(
    tmp_path: Path, empty_variables: dict[str, str]
) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    command = [sys.executable, "-m", "toolbench.cli", "worker"]
    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, **empty_variables, "TOOLBENCH_VAR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert result.returncode == 1
    assert "start it with `make up`" in result.stderr


def test_toolbench_eval_has_the_exit_code_of_the_management_command() -> None:
    result = _run("eval", "--trials", "none")

    assert result.returncode == 2
    assert "--trials must be a whole number from 1" in result.stderr


def test_toolbench_up_checks_an_option_like_its_variable(tmp_path: Path) -> None:
    result = _run("up", "--port", "http", "--var", str(tmp_path))

    assert result.returncode == 1
    assert "PORT must be a whole number from 1 to 65535, not 'http'." in result.stderr
