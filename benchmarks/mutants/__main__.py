"""Mutation testing: does a test on the mirrored path fail if a module is changed?

`python -m benchmarks.mutants` draws mutants of the modules in `TARGETS` by a seed. Each changes one comparison,
boolean, constant, plus or minus, or swaps two branches; then the tests on the module's mirrored path run. A mutant
survives if no test fails. Mutants that change nothing that a caller can observe are listed with the reason in
`benchmarks/data/equivalent_mutants.json`. The exit code is 1 if fewer than 95 % are killed, a survivor is not listed,
or a listed mutant is killed or does not exist.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.mutants.forked_runs import (
    MIN_TIMEOUT_SECONDS,
    ROOT,
    TIMEOUT_FACTOR,
    MutantJob,
    MutantResult,
    copy_tree,
    list_mirrored_tests,
    run_jobs,
)
from benchmarks.mutants.mutation import Mutant, find_mutants

TARGETS = (
    "toolbench/evals/statistics",
    "toolbench/evals/judging",
    "toolbench/evals/causes",
    "toolbench/engine/loop",
    "toolbench/engine/arguments.py",
    "toolbench/engine/repairs",
    "toolbench/engine/policy",
)
EQUIVALENTS_FILE = "benchmarks/data/equivalent_mutants.json"
MIN_KILLED_SHARE = 0.95
UNCHANGED_TIMEOUT_SECONDS = 600


def main(arguments: Iterable[str] | None = None, tree: Path = ROOT) -> int:
    options = _parse_options(arguments)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("Stopped.")
    )  # so that the copy is deleted and the runs are killed, as after Ctrl-C
    equivalents: dict[str, str] = json.loads((tree / EQUIVALENTS_FILE).read_text())
    with copy_tree(tree) as root:
        paths = _list_modules(root, options.targets or TARGETS)
        mutants = [mutant for path in paths for mutant in find_mutants(root, path)]
        drawn = random.Random(options.seed).sample(mutants, min(options.count or len(mutants), len(mutants)))
        names = {mutant.name for mutant in drawn}
        listed = [mutant for mutant in mutants if mutant.name in equivalents and mutant.name not in names]
        seconds = _check_unchanged(root, sorted({mutant.path for mutant in drawn + listed}), options.jobs)
        results = _run_mutants(root, drawn + listed, seconds, options.jobs)
    existing = {mutant.name for mutant in mutants}
    missing = [name for name in equivalents if name.split(":")[0] in paths and name not in existing]
    return _print_report(results, names, equivalents, missing)


def _parse_options(arguments: Iterable[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("targets", nargs="*", help="modules or packages, as toolbench/evals/judging; default: all")
    parser.add_argument("--seed", type=int, default=11, help="default 11")
    parser.add_argument(
        "--count", type=int, default=500, help="number of mutants that are drawn (default 500; 0 for all)"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="runs at the same time (default: one for each CPU)",
    )
    return parser.parse_args(None if arguments is None else list(arguments))


def _list_modules(root: Path, targets: Sequence[str]) -> list[str]:
    """Return the paths of the modules in files and packages, sorted."""
    files = {
        file
        for target in targets
        for file in ([root / target] if target.endswith(".py") else (root / target).glob("*.py"))
    }
    return sorted(str(file.relative_to(root)) for file in files)


def _check_unchanged(root: Path, paths: Sequence[str], max_runs: int) -> dict[str, float]:
    """Run the tests of every module without a mutant.

    Returns:
        The seconds of the tests, by module.

    Raises:
        SystemExit: a test fails.
    """
    finished = list(run_jobs(root, [MutantJob(path, None, UNCHANGED_TIMEOUT_SECONDS) for path in paths], max_runs))
    if failed := [item.job.path for item in finished if not item.passed]:
        sys.exit(f"Tests fail without any mutant: {', '.join(sorted(failed))}. Fix them first.")
    for item in finished:
        tests = ", ".join(list_mirrored_tests(root, item.job.path))
        print(f"{item.seconds:5.1f} s  {item.job.path}: {tests}", flush=True)
    return {item.job.path: item.seconds for item in finished}


def _run_mutants(root: Path, mutants: Sequence[Mutant], seconds: dict[str, float], max_runs: int) -> list[MutantResult]:
    timeouts = {path: max(MIN_TIMEOUT_SECONDS, TIMEOUT_FACTOR * taken) for path, taken in seconds.items()}
    jobs = [MutantJob(mutant.path, mutant, timeouts[mutant.path]) for mutant in mutants]
    began, results = time.monotonic(), []
    for finished in run_jobs(root, jobs, max_runs):
        results.append(finished)
        if finished.passed and finished.job.mutant:
            mutant = finished.job.mutant
            print(f"survived, line {mutant.line}: {mutant.name}", flush=True)
        if len(results) % 50 == 0:
            print(f"{len(results)} of {len(jobs)} after {time.monotonic() - began:.0f} s", flush=True)
    return results


def _print_report(
    results: Sequence[MutantResult], drawn: set[str], equivalents: dict[str, str], missing: Sequence[str]
) -> int:
    survivors = sorted(result.job.mutant.name for result in results if result.passed and result.job.mutant)
    listed_killed = sorted(
        result.job.mutant.name
        for result in results
        if not result.passed and result.job.mutant and result.job.mutant.name in equivalents
    )
    unlisted = [name for name in survivors if name not in equivalents]
    counted = [result for result in results if result.job.mutant and result.job.mutant.name in drawn]
    killed = sum(not item.passed for item in counted)
    print("\n| package | mutants | killed | timeout | survived |\n|---|---|---|---|---|")
    by_package: dict[str, Counter[str]] = {}
    for item in counted:
        by_package.setdefault(str(Path(item.job.path).parent), Counter())[item.outcome] += 1
    for package, outcomes in sorted(by_package.items()):
        figures = (outcomes.total(), outcomes["killed"], outcomes["timeout"], outcomes["survived"])
        print(f"| {package} | {' | '.join(map(str, figures))} |")
    explained = [f"{name}: {equivalents[name]}" for name in survivors if name in equivalents]
    _print_names("Survivors that are listed as equivalent", explained)
    _print_names("Survivors that are not listed", unlisted)
    _print_names("Listed as equivalent, but a test fails", listed_killed)
    _print_names("Listed as equivalent, but not a mutant any more", missing)
    print(
        f"\n{killed} of {len(counted)} fail a test on the mirrored path ({100 * killed / max(1, len(counted)):.1f} %)."
    )
    return int(killed < MIN_KILLED_SHARE * len(counted) or bool(unlisted or listed_killed or missing))


def _print_names(title: str, names: Sequence[str]) -> None:
    if names:
        print(f"\n{title}: {len(names)}", *names, sep="\n- ")


if __name__ == "__main__":
    sys.exit(main())
