"""Mutation tool on a small tree, and the mirrored tests of modules in this repository."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.mutants.forked_runs import ROOT, MutantJob, MutantResult, list_mirrored_tests

CODE = "import sys; from pathlib import Path; from benchmarks.mutants.__main__ import main"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
MODULE = """
def above(a):
    return a > 5
"""
TESTS = """
from toolbench.above import above

def test_above():
    assert above(6)
"""
SURVIVING = "toolbench/above.py:above: return a > 5 -> return a > 4"
KILLED = "toolbench/above.py:above: return a > 5 -> return a > 6"
GONE = "toolbench/above.py:old: return 1 -> return 2"


@pytest.mark.parametrize(
    ("module", "tests"),
    [
        ("toolbench/evals/statistics/pairs.py", ["tests/evals/statistics/test_pairs.py"]),
        ("toolbench/evals/statistics/sequential.py", ["tests/evals/statistics/test_sequential.py"]),
        ("toolbench/engine/arguments.py", ["tests/engine/test_arguments.py"]),
        ("toolbench/engine/loop/__init__.py", ["tests/engine/loop"]),
    ],
)
def test_list_mirrored_tests_of_module_or_package(module: str, tests: list[str]) -> None:
    assert list_mirrored_tests(ROOT, module) == tests


def test_list_mirrored_tests_includes_further_files_of_module(tmp_path: Path) -> None:
    for path in ("toolbench/a.py", "toolbench/a_b.py", "tests/test_a.py", "tests/test_a_long.py", "tests/test_a_b.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert list_mirrored_tests(tmp_path, "toolbench/a.py") == ["tests/test_a.py", "tests/test_a_long.py"]
    assert list_mirrored_tests(tmp_path, "toolbench/a_b.py") == ["tests/test_a_b.py"]


def write_tree(folder: Path, tests: str, equivalents: dict[str, str]) -> None:
    for path, text in {
        "toolbench/__init__.py": "",
        "toolbench/above.py": MODULE,
        "tests/__init__.py": "",
        "tests/test_above.py": tests,
        "pytest.ini": "[pytest]\nmarkers = browser\n",
        "benchmarks/data/equivalent_mutants.json": json.dumps(equivalents),
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def run_tool(folder: Path, tests: str, equivalents: dict[str, str]) -> tuple[int, str, str]:
    write_tree(folder, tests, equivalents)
    command = f"{CODE}; sys.exit(main(['toolbench/above.py', '--jobs', '1', '--count', '0'], Path({str(folder)!r})))"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, env=ENVIRONMENT, text=True, capture_output=True)
    return done.returncode, done.stdout, done.stderr


def test_mutants_tool_reports_survivors_and_stale_equivalents(tmp_path: Path) -> None:
    code, output, errors = run_tool(tmp_path, TESTS, {SURVIVING: "for this test", KILLED: "wrong", GONE: "wrong"})
    assert code == 1, errors
    listed, unlisted, killed, gone = output.split("\n\n")[-5:-1]
    assert f"{SURVIVING}: for this test" in listed
    assert "return a > 5 -> return a >= 5" in unlisted
    assert SURVIVING not in unlisted
    assert KILLED in killed
    assert GONE in gone
    assert (tmp_path / "toolbench/above.py").read_text() == MODULE


def test_mutants_tool_succeeds_if_every_mutant_fails_a_test(tmp_path: Path) -> None:
    code, output, errors = run_tool(tmp_path, f"{TESTS}    assert not above(5)\n", {})
    assert code == 0, output + errors
    assert "3 of 3 fail a test" in output


def test_mutants_tool_refuses_tests_that_fail_without_a_mutant(tmp_path: Path) -> None:
    code, _, errors = run_tool(tmp_path, f"{TESTS}    assert above(0)\n", {})
    assert code == 1
    assert "Tests fail without any mutant: toolbench/above.py" in errors


@pytest.mark.parametrize(
    ("exit_code", "outcome", "passed"),
    [
        (0, "survived", True),
        (5, "survived", True),
        (1, "killed", False),
        (2, "killed", False),
        (-signal.SIGSEGV, "killed", False),
        (-signal.SIGXCPU, "timeout", False),
        (None, "timeout", False),
    ],
)
def test_mutant_result_survives_only_if_tests_pass(exit_code: int | None, outcome: str, passed: bool) -> None:
    finished = MutantResult(MutantJob("toolbench/above.py", None, 10), exit_code, 1.0)
    assert (finished.outcome, finished.passed) == (outcome, passed)


def test_run_jobs_ends_job_that_uses_up_its_time(tmp_path: Path) -> None:
    """A limit of 1 s of CPU time ends a test with an endless loop."""
    code = "import sys; from pathlib import Path\n"
    code += "from benchmarks.mutants.forked_runs import MutantJob, copy_tree, run_jobs\n"
    code += f"with copy_tree(Path({str(tmp_path)!r})) as root:\n"
    code += "    print([one.outcome for one in run_jobs(root, [MutantJob('toolbench/above.py', None, 1)], 1)])"
    write_tree(tmp_path, f"{TESTS}\n\ndef test_counting():\n    while above(6):\n        pass\n", {})
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=ENVIRONMENT, text=True, capture_output=True)
    assert done.stdout == "['timeout']\n", done.stderr
