"""Ids of calls as Messages accepts them: letters, digits, _ and -, each used once in a conversation."""

import hashlib
import re
from collections.abc import Iterable

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]+")


class CallIdMap:
    """Assignment of call ids for one conversation, turn by turn."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}

    def assign_ids(self, ids: Iterable[object]) -> list[str]:
        """Return the ids that are sent for the calls of one turn.

        A call keeps its id if Messages accepts it and no earlier call has it; otherwise it gets a replacement.
        """
        return [self._make_unique(_replace_forbidden_characters(given)) for given in ids]

    def _make_unique(self, base_id: str) -> str:
        while True:
            use_count = self._uses[base_id] = self._uses.get(base_id, 0) + 1
            unique_id = base_id if use_count == 1 else f"{base_id}_{use_count}"
            if use_count == 1 or unique_id not in self._uses:
                self._uses.setdefault(unique_id, 1)
                return unique_id


def _replace_forbidden_characters(call_id: object) -> str:
    text = call_id if isinstance(call_id, str) else ""
    if _ALLOWED.fullmatch(text):
        return text
    return f"toolu_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
