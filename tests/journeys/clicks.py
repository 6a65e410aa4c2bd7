"""Counter of the clicks that a person needs in a journey."""

from collections.abc import Callable
from functools import wraps
from typing import Any

# Clicks per action of a locator. A choice in a menu takes two: one opens it.
CLICKS_BY_ACTION = {"click": 1, "check": 1, "uncheck": 1, "select_option": 2}


class ClickCounter:
    """Number of clicks so far."""

    def __init__(self) -> None:
        self.count = 0

    def count_calls(self, action: Callable[..., Any], clicks: int) -> Callable[..., Any]:
        """Return the action, which counts `clicks` for each call."""

        @wraps(action)
        def act(*args: Any, **named: Any) -> Any:
            self.count += clicks
            return action(*args, **named)

        return act
