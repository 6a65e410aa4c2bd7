"""Many comparisons at once: p-values that may still be read one by one."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Corrected after Holm, in the order given: claims below 5 % hold all together, dependent or not."""
    count = len(p_values)
    corrected = [0.0] * count
    highest = 0.0
    for rank, place in enumerate(sorted(range(count), key=lambda place: p_values[place])):
        highest = max(highest, min(1.0, (count - rank) * p_values[place]))
        corrected[place] = highest
    return tuple(corrected)
