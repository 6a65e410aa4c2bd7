"""Ids of calls as a wire format accepts them, each used once in a conversation."""

import hashlib
import re
from collections.abc import Iterable

_MESSAGES_ID = re.compile(r"[a-zA-Z0-9_-]+")


class CallIdAssigner:
    """Assigner of call ids for one conversation, turn by turn.

    Args:
        allowed_pattern: regular expression that an id must match as a whole to be accepted.
        prefix: beginning of the ids that replace refused ones.
    """

    def __init__(self, allowed_pattern: re.Pattern[str] = _MESSAGES_ID, prefix: str = "toolu_") -> None:
        self._allowed_pattern = allowed_pattern
        self._prefix = prefix
        self._use_counts: dict[str, int] = {}

    def assign_ids(self, original_ids: Iterable[object]) -> list[str]:
        """Return the ids that are sent for the calls of one turn.

        A call keeps an id that is allowed and that no earlier call has; otherwise the call gets another id.
        """
        return [self._make_unique(self._make_allowed(original_id)) for original_id in original_ids]

    def _make_unique(self, base_id: str) -> str:
        """Note the use of an id and return it, with the suffix `_2`, `_3` and so on if it was used before.

        An id that the suffix makes too long is replaced.
        """
        while True:
            use_count = self._use_counts[base_id] = self._use_counts.get(base_id, 0) + 1
            unique_id = base_id if use_count == 1 else self._make_allowed(f"{base_id}_{use_count}")
            if use_count == 1 or unique_id not in self._use_counts:
                self._use_counts.setdefault(unique_id, 1)
                return unique_id

    def _make_allowed(self, call_id: object) -> str:
        """Return the id if it matches the pattern, else the prefix with a hash of the id, or of "" if it is no text."""
        text = call_id if isinstance(call_id, str) else ""
        if self._allowed_pattern.fullmatch(text):
            return text
        return f"{self._prefix}{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
