"""Whole numbers between two bounds, as a grammar spells them."""

LONGEST = 16  # digits of a whole number without a bound
MOST = 10**LONGEST - 1


def whole_number(low: int | None, high: int | None) -> str:
    """GBNF for the decimal spelling of every whole number from `low` to `high`, without leading zeros or a plus."""
    bottom = max(low, -MOST) if low is not None else -MOST
    top = min(high, MOST) if high is not None else MOST
    if bottom > top:  # beyond what is counted here
        bottom, top = (bottom, bottom) if low is not None else (top, top)
    options = []
    if bottom < 0:
        below = _between(max(1, -top), -bottom)
        options.append(f'"-" ({below})')
    if top >= 0:
        options.append(_between(max(0, bottom), top))
    return " | ".join(options)


def _between(low: int, high: int) -> str:
    """Numbers that are not negative; one group per count of digits."""
    options: list[str] = []
    for digits in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (digits - 1) if digits > 1 else 0)
        last = min(high, 10**digits - 1)
        options += _same_length(str(first), str(last))
    return " | ".join(options)


def _same_length(low: str, high: str) -> list[str]:
    """Between two numbers with as many digits."""
    if not low or low == high:
        return [f'"{low}"'] if low else []
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return [_digits(low[0], high[0], rest)]
    if low[0] == high[0]:
        return [f'"{low[0]}" {_grouped(_same_length(low[1:], high[1:]))}']
    options = [f'"{low[0]}" {_grouped(_same_length(low[1:], "9" * rest))}']
    if int(high[0]) - int(low[0]) > 1:
        options.append(_digits(str(int(low[0]) + 1), str(int(high[0]) - 1), rest))
    options.append(f'"{high[0]}" {_grouped(_same_length("0" * rest, high[1:]))}')
    return options


def _digits(first: str, last: str, rest: int) -> str:
    head = f'"{first}"' if first == last else f"[{first}-{last}]"
    return f"{head} [0-9]{{{rest},{rest}}}" if rest else head


def _grouped(options: list[str]) -> str:
    return options[0] if len(options) == 1 else f"({' | '.join(options)})"
