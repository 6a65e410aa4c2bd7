"""The virtual environment of `make up`: created once, and updated for another list of packages."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolbench.running import bootstrap

_SCRIPT = Path(bootstrap.__file__)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a checkout with a blank in its path and without packages; the tests use it in their order."""
    root = tmp_path_factory.mktemp("bootstrap") / "my checkout"
    (root / "toolbench/running").mkdir(parents=True)
    (root / "requirements").mkdir()
    (root / "requirements/run.txt").write_text("# nothing\n")
    (root / "toolbench/running/bootstrap.py").write_text(_SCRIPT.read_text())
    return root


def run_bootstrap(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "toolbench/running/bootstrap.py"), "requirements/run.txt"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_bootstrap_creates_the_environment_once(checkout: Path) -> None:
    first, second = run_bootstrap(checkout), run_bootstrap(checkout)

    assert first.returncode == 0, first.stderr
    assert (checkout / ".venv/bin/python").exists()
    assert first.stdout.startswith("Installing packages")
    assert second.stdout == ""


def test_bootstrap_reports_a_failed_installation_in_one_sentence(checkout: Path) -> None:
    (checkout / "requirements/run.txt").write_text("without-a-hash==1.0\n")

    failed = run_bootstrap(checkout)

    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert str(checkout / "var/log/pip.log") in failed.stderr


def test_bootstrap_repeats_a_failed_installation(checkout: Path) -> None:
    (checkout / "requirements/run.txt").write_text("without-a-hash==1.0\n")
    failed = run_bootstrap(checkout)
    (checkout / "requirements/run.txt").write_text("# repaired\n")

    assert failed.returncode == 1
    assert run_bootstrap(checkout).returncode == 0


def test_bootstrap_replaces_an_environment_whose_python_has_no_pip(checkout: Path) -> None:
    python = checkout / ".venv/bin/python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 1\n")  # like the link to a newer Python after an upgrade of the system
    python.chmod(0o755)
    (checkout / "requirements/run.txt").write_text("# another list\n")

    result = run_bootstrap(checkout)

    assert result.returncode == 0, result.stderr
    assert python.is_symlink()
