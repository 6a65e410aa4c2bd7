"""Ids of calls as Messages accepts them: letters, digits, _ and -, each used once in a conversation."""

import hashlib
import re
from collections.abc import Iterable

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]+")


class CallIdMap:
    """The ids of one conversation, assigned turn by turn."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}

    def assign_ids(self, ids: Iterable[object]) -> list[str]:
        """Return the ids that are sent for the calls of one turn.

        A call keeps its id if Messages accepts it and no earlier call has it; otherwise it gets a replacement.
        """
        return [self._unique(_replace_forbidden_characters(given)) for given in ids]

    def _unique(self, base: str) -> str:
        while True:
            uses = self._uses[base] = self._uses.get(base, 0) + 1
            unique = base if uses == 1 else f"{base}_{uses}"
            if uses == 1 or unique not in self._uses:
                self._uses.setdefault(unique, 1)
                return unique


def _replace_forbidden_characters(given: object) -> str:
    text = given if isinstance(given, str) else ""
    if _ALLOWED.fullmatch(text):
        return text
    return f"toolu_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
