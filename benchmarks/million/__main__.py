"""Server time of every page and list of the API on a large database: `python -m benchmarks.million`.

Makes a database of a million trials in minutes and requests each address with its filters and sorts. `--folder` keeps
the database: the next call with it only measures. Prints one row per address: milliseconds of the first call of a
process, p95 of the later ones, the CPU of both with the part of the database, queries, and kilobytes after gzip; then
each address that misses an aim, with the aim. Before that, it prints the CPU of writing search texts, which the sweep
does in the background, and the first requests to real web servers. Exits with 1 if an address misses an aim.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.stack import Stack

TEMPLATE_TRIALS = 5
GATEWAY_TRACES = 100_000
SEARCH_TEXTS = 2_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 1 if an address missed an aim, or if the measurement stopped."""
    options = _parse_arguments(arguments)
    is_made = options.folder is not None and (options.folder / "made").exists()
    with Stack(options.folder) as stack:
        if not is_made:
            run = stack.run_module("benchmarks.million.template_run", str(TEMPLATE_TRIALS)).strip()
            stack.run_module("benchmarks.million.multiply", run, str(options.trials), str(options.seed))
            if options.folder is not None:
                (options.folder / "made").touch()
        stack.run_module("toolbench.manage", "catalogue")
        stack.run_module("benchmarks.million.gateway_traces", str(GATEWAY_TRACES))
        if not options.only:
            print(stack.run_module("benchmarks.million.search_texts", str(SEARCH_TEXTS)), end="")
            print(stack.run_module("benchmarks.million.first_requests"), end="")
        return _measure_pages(stack, options)


def _measure_pages(stack: Stack, options: argparse.Namespace) -> int:
    """Print what each address cost, and return the exit code of the measurement."""
    try:
        print(stack.run_module("benchmarks.million.page_times", str(options.repeats), *options.only), end="")
    except subprocess.CalledProcessError as error:
        print(error.stdout, end="")
        return 1
    return 0


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.million", description="Times pages on a million trials."
    )
    parser.add_argument("only", nargs="*", help="measure only addresses that begin so, such as /trials/")
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1, help="by which runs and times are drawn")
    parser.add_argument("--repeats", type=int, default=10, help="later calls of each address")
    parser.add_argument("--folder", type=Path, help="keeps the database here")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
