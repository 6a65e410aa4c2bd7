"""Ids of calls as a wire format accepts them, each used once in a conversation."""

import hashlib
import re
from collections.abc import Iterable

_MESSAGES_ID = re.compile(r"[a-zA-Z0-9_-]+")


class CallIdMap:
    """Assignment of call ids for one conversation, turn by turn.

    Args:
        allowed: pattern of the ids that are accepted.
        prefix: beginning of the ids that replace others.
    """

    def __init__(self, allowed: re.Pattern[str] = _MESSAGES_ID, prefix: str = "toolu_") -> None:
        self._allowed = allowed
        self._prefix = prefix
        self._uses: dict[str, int] = {}

    def assign_ids(self, ids: Iterable[object]) -> list[str]:
        """Return the ids that are sent for the calls of one turn.

        A call keeps its id if it is allowed and no earlier call has it; otherwise it gets a replacement.
        """
        return [self._make_unique(self._make_allowed(given)) for given in ids]

    def _make_unique(self, base_id: str) -> str:
        while True:
            use_count = self._uses[base_id] = self._uses.get(base_id, 0) + 1
            unique_id = base_id if use_count == 1 else f"{base_id}_{use_count}"
            if use_count == 1 or unique_id not in self._uses:
                self._uses.setdefault(unique_id, 1)
                return unique_id

    def _make_allowed(self, call_id: object) -> str:
        text = call_id if isinstance(call_id, str) else ""
        if self._allowed.fullmatch(text):
            return text
        return f"{self._prefix}{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
