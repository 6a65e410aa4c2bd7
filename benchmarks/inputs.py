"""How the time of everything that reads input grows with its size.

`python -m benchmarks.inputs` prints milliseconds of CPU for inputs of n, 2n and 4n characters, and the ratios of
neighbours: 2 is linear, 4 quadratic. `--size` sets n, `--rounds` how often each is measured; the least counts."""

import argparse
import gc
import time
from itertools import pairwise

from benchmarks.input_readers import READER_BY_NAME, InputReader

SIZE_FACTORS = (1, 2, 4)


def measure_cpu_ms(reader: InputReader, size: int, rounds: int) -> float:
    """The least of several rounds."""
    given = reader.make(size)
    times = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()  # its own time comes in steps
        began = time.process_time_ns()
        reader.read(given)
        times.append(time.process_time_ns() - began)
        gc.enable()
    return min(times) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=15_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    print(f"{'CPU ms, n = ' + format(chosen.size, ','):42}{'n':>9}{'2n':>9}{'4n':>9}{'2n/n':>7}{'4n/2n':>7}")
    for name, reader in READER_BY_NAME.items():
        times = [measure_cpu_ms(reader, step * chosen.size, chosen.rounds) for step in SIZE_FACTORS]
        ratios = [after / before for before, after in pairwise(times)]
        print(f"{name:42}" + "".join(f"{ms:9.2f}" for ms in times) + "".join(f"{ratio:7.1f}" for ratio in ratios))


if __name__ == "__main__":
    main()
