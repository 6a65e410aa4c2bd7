"""Grammar of the whole numbers between two bounds."""

MAX_DIGITS = 16  # digits of the largest whole number
MAX_INTEGER = 10**MAX_DIGITS - 1


def build_integer_grammar(low: int | None, high: int | None) -> str:
    """Return GBNF for the decimal text of each whole number from `low` to `high`, both included.

    The text has no leading zeros and no plus. None stands for MAX_INTEGER or its negative.
    """
    lowest = max(low, -MAX_INTEGER) if low is not None else -MAX_INTEGER
    highest = min(high, MAX_INTEGER) if high is not None else MAX_INTEGER
    if lowest > highest:  # one bound is beyond MAX_INTEGER, so only that bound is allowed
        lowest, highest = (lowest, lowest) if low is not None else (highest, highest)
    options = []
    if lowest < 0:
        negative_range = _build_range(max(1, -highest), -lowest)
        options.append(f'"-" ({negative_range})')
    if highest >= 0:
        options.append(_build_range(max(0, lowest), highest))
    return " | ".join(options)


def _build_range(low: int, high: int) -> str:
    """Return GBNF for the numbers from `low` to `high`, which must not be negative."""
    options: list[str] = []
    for digits in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (digits - 1) if digits > 1 else 0)
        last = min(high, 10**digits - 1)
        options += _build_equal_length_range(str(first), str(last))
    return " | ".join(options)


def _build_equal_length_range(low: str, high: str) -> list[str]:
    """Return GBNF alternatives for the numbers from `low` to `high`, which have the same number of digits."""
    if not low or low == high:
        return [f'"{low}"'] if low else []
    further_digits = len(low) - 1
    if low[1:] == "0" * further_digits and high[1:] == "9" * further_digits:
        return [_build_digit_run(low[0], high[0], further_digits)]
    if low[0] == high[0]:
        return [f'"{low[0]}" {_build_group(_build_equal_length_range(low[1:], high[1:]))}']
    options = [f'"{low[0]}" {_build_group(_build_equal_length_range(low[1:], "9" * further_digits))}']
    if int(high[0]) - int(low[0]) > 1:
        options.append(_build_digit_run(str(int(low[0]) + 1), str(int(high[0]) - 1), further_digits))
    options.append(f'"{high[0]}" {_build_group(_build_equal_length_range("0" * further_digits, high[1:]))}')
    return options


def _build_digit_run(first: str, last: str, further_digits: int) -> str:
    first_digit = f'"{first}"' if first == last else f"[{first}-{last}]"
    return f"{first_digit} [0-9]{{{further_digits},{further_digits}}}" if further_digits else first_digit


def _build_group(options: list[str]) -> str:
    return options[0] if len(options) == 1 else f"({' | '.join(options)})"
