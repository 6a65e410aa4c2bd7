"""Growth of the time of every reader of inputs with the size of its input.

`python -m benchmarks.inputs` prints milliseconds of CPU for inputs of n, 2n and 4n characters, and the ratios of
neighbours: a ratio of 2 is linear growth, one of 4 quadratic. The fastest of several rounds counts.
"""

import argparse
import gc
import time
from itertools import pairwise

from benchmarks.input_readers import READER_BY_NAME, InputReader

SIZE_FACTORS = (1, 2, 4)


def measure_cpu_ms(reader: InputReader, size: int, rounds: int) -> float:
    """Return the CPU time of the fastest of several rounds."""
    text = reader.build_input(size)
    times = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()  # a collection would lengthen single rounds
        began = time.process_time_ns()
        reader.read(text)
        times.append(time.process_time_ns() - began)
        gc.enable()
    return min(times) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inputs", description=__doc__)
    parser.add_argument("--size", type=int, default=15_000, help="n, in characters (default 15000)")
    parser.add_argument("--rounds", type=int, default=3, help="of each input (default 3)")
    options = parser.parse_args()
    print(f"{'CPU ms, n = ' + format(options.size, ','):42}{'n':>9}{'2n':>9}{'4n':>9}{'2n/n':>7}{'4n/2n':>7}")
    for name, reader in READER_BY_NAME.items():
        times = [measure_cpu_ms(reader, factor * options.size, options.rounds) for factor in SIZE_FACTORS]
        ratios = [after / before for before, after in pairwise(times)]
        print(f"{name:42}" + "".join(f"{ms:9.2f}" for ms in times) + "".join(f"{ratio:7.1f}" for ratio in ratios))


if __name__ == "__main__":
    main()
