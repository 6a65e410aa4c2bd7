"""Faults by line in a history."""

import pytest

from toolbench.lab.interchange.history.lines import MAX_PROBLEMS_SHOWN, HistoryImportError, parse_lines


@pytest.mark.parametrize(
    ("later_lines", "is_named"), [([], False), ([b"", b" "], False), ([b"x"], True), ([b"", b"{}"], True)]
)
def test_parse_lines_names_later_lines_only_if_there_are_any(later_lines: list[bytes], is_named: bool) -> None:
    with pytest.raises(HistoryImportError) as failure:
        parse_lines([b"x"] * MAX_PROBLEMS_SHOWN + later_lines)
    assert str(failure.value).count("it is not JSON") == MAX_PROBLEMS_SHOWN
    assert ("Later lines were not checked." in str(failure.value)) == is_named
