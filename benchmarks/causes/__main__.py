"""Share of failed trials that get the right cause: `python -m benchmarks.causes`.

It prints three measurements: each published fault of the simulated models alone (`single_faults.py`), pairs of faults
(`fault_pairs.py`), and the recorded answers of the tests beside the labels of a reader (`recorded_answers.py`).
`--sheet FILE` writes what the reader gets, and measures nothing. The exit code is 1 if the first or the second share is
below the aim of 98 %.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.causes import fault_pairs, recorded_answers, single_faults
from benchmarks.causes.simulated_trials import play_with_causes
from toolbench.evals import scenarios
from toolbench.providers.simulated.personas import load_personas


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse_arguments(arguments)
    if options.sheet:
        options.sheet.write_text(json.dumps(recorded_answers.build_sheet(), indent=1) + "\n", encoding="utf-8")
        return 0
    slugs = [scenario.slug for scenario in scenarios.list_scenarios()]
    cells = list(single_faults.iter_cells(load_personas().values(), slugs))
    print("## Each fault alone\n")
    played = play_with_causes((cell, seed) for cell in cells for seed in range(options.seeds))
    print("\n".join(single_faults.iter_report_lines(played)))
    print("\n## Two faults at once\n")
    drawn = fault_pairs.draw_pairs(options.pairs, options.seed)
    judged = fault_pairs.judge_pairs(drawn)
    print("\n".join(fault_pairs.iter_report_lines(judged, len(drawn))))
    print("\n## Recorded answers\n")
    print("\n".join(recorded_answers.iter_report_lines(recorded_answers.read_labels())))
    return int(min(single_faults.compute_share(played), fault_pairs.compute_share(judged)) < single_faults.MIN_SHARE)


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.causes", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="trials of each cell of the first measurement (default 1)")
    parser.add_argument("--pairs", type=int, default=fault_pairs.DEFAULT_PAIRS, help="number of pairs (default 300)")
    parser.add_argument("--seed", type=int, default=fault_pairs.DEFAULT_SEED, help="for drawing pairs (default 11)")
    parser.add_argument("--sheet", type=Path, help="write what the reader of the recorded answers gets, and end")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
