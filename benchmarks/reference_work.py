"""Fixed work for the CPU, by which times of different machines and minutes can be compared.

On a virtual machine the same work can take twice the CPU time when the host is busy, also at a load average below 1.
"""

import json
import time
from collections.abc import Sequence
from statistics import median

ROUNDS = 40
_DOCUMENT = {
    "calls": [{"name": f"tool_{number}", "arguments": {"city": "Bern", "days": number}} for number in range(100)]
}


def measure_reference_ms() -> float:
    """Write and read a JSON document of 6 kB forty times, and return the milliseconds of CPU that it took."""
    begun = time.process_time()
    for _ in range(ROUNDS):
        json.loads(json.dumps(_DOCUMENT))
    return 1000 * (time.process_time() - begun)


def render_reference(times: Sequence[float]) -> str:
    """Return a sentence with the median, the least and the most of these milliseconds."""
    return f"Reference work took {median(times):.1f} ms of CPU; least {min(times):.1f}, most {max(times):.1f}."
