"""Whole numbers between two bounds as a grammar."""

MAX_DIGITS = 16  # digits of a whole number without a bound
MAX_INTEGER = 10**MAX_DIGITS - 1


def build_integer_grammar(low: int | None, high: int | None) -> str:
    """Return GBNF for the decimal text of each whole number from `low` to `high`, without leading zeros or a plus."""
    bottom = max(low, -MAX_INTEGER) if low is not None else -MAX_INTEGER
    top = min(high, MAX_INTEGER) if high is not None else MAX_INTEGER
    if bottom > top:  # beyond what is counted here
        bottom, top = (bottom, bottom) if low is not None else (top, top)
    options = []
    if bottom < 0:
        below = _build_range(max(1, -top), -bottom)
        options.append(f'"-" ({below})')
    if top >= 0:
        options.append(_build_range(max(0, bottom), top))
    return " | ".join(options)


def _build_range(low: int, high: int) -> str:
    """Return GBNF for numbers that are not negative, with one group for each number of digits."""
    options: list[str] = []
    for digits in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (digits - 1) if digits > 1 else 0)
        last = min(high, 10**digits - 1)
        options += _build_equal_length_range(str(first), str(last))
    return " | ".join(options)


def _build_equal_length_range(low: str, high: str) -> list[str]:
    """Return GBNF for numbers between two numbers with the same number of digits."""
    if not low or low == high:
        return [f'"{low}"'] if low else []
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return [_build_digits(low[0], high[0], rest)]
    if low[0] == high[0]:
        return [f'"{low[0]}" {_build_group(_build_equal_length_range(low[1:], high[1:]))}']
    options = [f'"{low[0]}" {_build_group(_build_equal_length_range(low[1:], "9" * rest))}']
    if int(high[0]) - int(low[0]) > 1:
        options.append(_build_digits(str(int(low[0]) + 1), str(int(high[0]) - 1), rest))
    options.append(f'"{high[0]}" {_build_group(_build_equal_length_range("0" * rest, high[1:]))}')
    return options


def _build_digits(first: str, last: str, rest: int) -> str:
    head = f'"{first}"' if first == last else f"[{first}-{last}]"
    return f"{head} [0-9]{{{rest},{rest}}}" if rest else head


def _build_group(options: list[str]) -> str:
    return options[0] if len(options) == 1 else f"({' | '.join(options)})"
