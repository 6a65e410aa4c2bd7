"""Grammar of the whole numbers between two bounds."""

MAX_DIGITS = 16  # digits that a missing bound allows, unless the other bound has more
MAX_BOUND_DIGITS = 64  # digits of the largest bound that the grammar enforces


def build_integer_grammar(minimum: int | None, maximum: int | None) -> str:
    """Return GBNF for the decimal text of each whole number from `minimum` to `maximum`, both included.

    The text has no leading zeros and no plus. A bound that is None allows MAX_DIGITS digits, or as many as the other
    bound has if these are more. Numbers with more than MAX_BOUND_DIGITS digits are excluded. If no number remains,
    only `minimum` is allowed, or `maximum` if `minimum` is None.
    """
    largest_number = 10**MAX_BOUND_DIGITS - 1
    bounds = [min(abs(bound), largest_number) for bound in (minimum, maximum) if bound is not None]
    default_bound = 10 ** max([MAX_DIGITS, *(len(str(bound)) for bound in bounds)]) - 1
    lowest = max(minimum, -largest_number) if minimum is not None else -default_bound
    highest = min(maximum, largest_number) if maximum is not None else default_bound
    if lowest > highest:  # the bounds exclude every number of up to MAX_BOUND_DIGITS digits
        lowest = highest = highest if minimum is None else minimum
    options = []
    if lowest < 0:
        negative_range = _build_range(max(1, -highest), -lowest)
        options.append(f'"-" ({negative_range})')
    if highest >= 0:
        options.append(_build_range(max(0, lowest), highest))
    return " | ".join(options)


def _build_range(low: int, high: int) -> str:
    """Return GBNF for the numbers from `low` to `high`. Neither bound may be negative."""
    options: list[str] = []
    for digit_count in range(len(str(low)), len(str(high)) + 1):
        lowest = max(low, 10 ** (digit_count - 1) if digit_count > 1 else 0)
        highest = min(high, 10**digit_count - 1)
        options += _build_equal_length_range(str(lowest), str(highest))
    return " | ".join(options)


def _build_equal_length_range(low: str, high: str) -> list[str]:
    """Return GBNF alternatives for the numbers from `low` to `high`. Both bounds must have equally many digits."""
    if not low or low == high:
        return [f'"{low}"'] if low else []
    further_digit_count = len(low) - 1
    if low[1:] == "0" * further_digit_count and high[1:] == "9" * further_digit_count:
        return [_build_digit_run(low[0], high[0], further_digit_count)]
    if low[0] == high[0]:
        return [f'"{low[0]}" {_build_group(_build_equal_length_range(low[1:], high[1:]))}']
    options = [f'"{low[0]}" {_build_group(_build_equal_length_range(low[1:], "9" * further_digit_count))}']
    if int(high[0]) - int(low[0]) > 1:
        options.append(_build_digit_run(str(int(low[0]) + 1), str(int(high[0]) - 1), further_digit_count))
    options.append(f'"{high[0]}" {_build_group(_build_equal_length_range("0" * further_digit_count, high[1:]))}')
    return options


def _build_digit_run(lowest_digit: str, highest_digit: str, further_digit_count: int) -> str:
    first_digit = f'"{lowest_digit}"' if lowest_digit == highest_digit else f"[{lowest_digit}-{highest_digit}]"
    return f"{first_digit} [0-9]{{{further_digit_count},{further_digit_count}}}" if further_digit_count else first_digit


def _build_group(options: list[str]) -> str:
    return options[0] if len(options) == 1 else f"({' | '.join(options)})"
