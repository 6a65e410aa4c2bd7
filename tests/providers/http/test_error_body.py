from collections.abc import Iterator

import pytest

from toolbench.providers.http import error_body
from toolbench.providers.http.error_body import parse_error


class CountedList(list[object]):
    """List that counts the items that are read by iteration."""

    read_count = 0

    def __iter__(self) -> Iterator[object]:
        for item in super().__iter__():
            self.read_count += 1
            yield item


def test_parse_error_reads_few_items_of_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    items = CountedList([{"param": "tools"}, *[0] * 100_000])
    monkeypatch.setattr(error_body, "parse_json", lambda body: {"error": {"message": "no", "errors": items}})
    error = parse_error(b"", is_error=True)
    assert error is not None
    assert (error.message, error.named_places) == ("no", ("tools",))
    assert items.read_count <= len(items) + 1000  # the text for searching has all of them
