"""Whether a test on the mirrored path fails when a module is changed: `python -m benchmarks.mutants`.

Mutants of the modules in `TARGETS` are drawn by a seed. Each changes one comparison, boolean, constant, plus or minus,
or swaps two branches; then the tests on the module's mirrored path run. A mutant that no test fails for survives. Those
that change nothing a caller can see are listed with the reason in `benchmarks/data/equivalent_mutants.json`. The exit
code is 1 when fewer than 95 % fail a test, a survivor is not listed, or a listed mutant fails a test or is gone."""

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


def main(arguments: Iterable[str] | None = None, tree: Path = ROOT) -> int:
    options = _parse_options(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped."))  # as Ctrl-C does: the copy and the runs go too
    equivalents: dict[str, str] = json.loads((tree / EQUIVALENTS_FILE).read_text())
    with copy_tree(tree) as root:
        paths = _list_modules(root, options.targets or TARGETS)
        mutants = [mutant for path in paths for mutant in find_mutants(root, path)]
        drawn = random.Random(options.seed).sample(mutants, min(options.count or len(mutants), len(mutants)))
        names = {mutant.name for mutant in drawn}
        listed = [mutant for mutant in mutants if mutant.name in equivalents and mutant.name not in names]
        seconds = _check_unchanged(root, sorted({mutant.path for mutant in drawn + listed}), options.jobs)
        results = _run_mutants(root, drawn + listed, seconds, options.jobs)
    in_targets = {path: True for path in paths}
    gone = [name for name in equivalents if name.split(":")[0] in in_targets and name not in {m.name for m in mutants}]
    return _print_report(results, names, equivalents, gone)


def _parse_options(arguments: Iterable[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.mutants", description=__doc__)
    parser.add_argument("targets", nargs="*", help="modules or packages, as toolbench/evals/judging; default: all")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--count", type=int, default=500, help="how many are drawn; 0: all")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="runs at once")
    return parser.parse_args(None if arguments is None else list(arguments))


def _list_modules(root: Path, targets: Sequence[str]) -> list[str]:
    """Return the modules of files and packages, sorted."""
    files = {
        file
        for target in targets
        for file in ([root / target] if target.endswith(".py") else (root / target).glob("*.py"))
    }
    return sorted(str(file.relative_to(root)) for file in files)


def _check_unchanged(root: Path, paths: Sequence[str], at_once: int) -> dict[str, float]:
    """Run the tests of every module as it is. Returns: seconds by module. Exits if any fail."""
    finished = list(run_jobs(root, [MutantJob(path, None, 600) for path in paths], at_once))
    if failed := [item.job.path for item in finished if not item.passed]:
        sys.exit(f"Tests fail without any mutant: {', '.join(sorted(failed))}. Fix them first.")
    for one in finished:
        print(f"{one.seconds:5.1f} s  {one.job.path}: {', '.join(list_mirrored_tests(root, one.job.path))}", flush=True)
    return {item.job.path: item.seconds for item in finished}


def _run_mutants(root: Path, mutants: Sequence[Mutant], seconds: dict[str, float], at_once: int) -> list[MutantResult]:
    jobs = [MutantJob(m.path, m, max(MIN_TIMEOUT_SECONDS, TIMEOUT_FACTOR * seconds[m.path])) for m in mutants]
    began, results = time.monotonic(), []
    for finished in run_jobs(root, jobs, at_once):
        results.append(finished)
        if finished.passed and finished.job.mutant:
            mutant = finished.job.mutant
            print(f"survived, line {mutant.line}: {mutant.name}", flush=True)
        if len(results) % 50 == 0:
            print(f"{len(results)} of {len(jobs)} after {time.monotonic() - began:.0f} s", flush=True)
    return results


def _print_report(
    results: Sequence[MutantResult], drawn: set[str], equivalents: dict[str, str], gone: Sequence[str]
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
    for one in counted:
        by_package.setdefault(str(Path(one.job.path).parent), Counter())[one.outcome] += 1
    for package, outcomes in sorted(by_package.items()):
        figures = (outcomes.total(), outcomes["killed"], outcomes["timeout"], outcomes["survived"])
        print(f"| {package} | {' | '.join(map(str, figures))} |")
    _print_names(
        "Survivors that are listed as equivalent", [f"{n}: {equivalents[n]}" for n in survivors if n in equivalents]
    )
    _print_names("Survivors that are not listed", unlisted)
    _print_names("Listed as equivalent, but a test fails", listed_killed)
    _print_names("Listed as equivalent, but no longer there", gone)
    print(
        f"\n{killed} of {len(counted)} fail a test on the mirrored path ({100 * killed / max(1, len(counted)):.1f} %)."
    )
    return int(killed < MIN_KILLED_SHARE * len(counted) or bool(unlisted or listed_killed or gone))


def _print_names(title: str, names: Sequence[str]) -> None:
    if names:
        print(f"\n{title}: {len(names)}", *names, sep="\n- ")


if __name__ == "__main__":
    sys.exit(main())
