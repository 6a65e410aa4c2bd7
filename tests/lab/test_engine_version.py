"""The version of the engine, which changes only with its behaviour."""

import json
from pathlib import Path

import pytest

from toolbench.lab.engine_version import (
    EQUAL_VERSIONS_PATH,
    compute_code_digest,
    compute_engine_version,
    select_distinct_versions,
)

MODULE = '''"""Read calls."""


def read(text: str) -> str:
    """Return the text."""
    return text.strip()  # white space is no call


class Reader:
    """A reader."""

    async def read(self) -> int:
        """Return a number."""
        return 1
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "reader.py").write_text(MODULE)
    (tmp_path / "table.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Read calls."""', '"""Read the calls of an answer."""'),
        ('"""Read calls."""', ""),
        ('    """Return the text."""\n', ""),
        ('"""A reader."""', '"""A reader\n\n    of calls."""'),
        ('"""Return a number."""', '"""Return one."""'),
        ("  # white space is no call", "\n    # another reason"),
        ("text.strip()", "(\n        text.strip()\n    )"),
    ],
)
def test_compute_code_digest_ignores_docstrings_comments_and_layout(folder: Path, old: str, new: str) -> None:
    before = compute_code_digest(folder)
    (folder / "reader.py").write_text(MODULE.replace(old, new))
    assert MODULE.replace(old, new) != MODULE
    assert compute_code_digest(folder) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("text.strip()", "text.lstrip()"),
        ("return 1", "return 2"),
        ("return 1", "return 1.0"),
        ("return 1", "return True"),
        ("def read(text: str)", "def read(words: str)"),
        ("async def", "def"),
        ("return text.strip()", 'return "Return the text."'),
    ],
)
def test_compute_code_digest_changes_with_code(folder: Path, old: str, new: str) -> None:
    before = compute_code_digest(folder)
    (folder / "reader.py").write_text(MODULE.replace(old, new))
    assert compute_code_digest(folder) != before


def test_compute_code_digest_changes_with_paths_and_data_files(folder: Path) -> None:
    found = {compute_code_digest(folder)}
    (folder / "table.json").write_text("[]")
    found.add(compute_code_digest(folder))
    (folder / "reader.py").rename(folder / "parser.py")
    found.add(compute_code_digest(folder))
    (folder / "empty.py").write_text('"""Only a docstring."""\n')
    found.add(compute_code_digest(folder))
    assert len(found) == 4


def test_compute_engine_version_is_12_hexadecimal_digits() -> None:
    assert len(compute_engine_version()) == 12
    int(compute_engine_version(), 16)


def test_select_distinct_versions_counts_equal_versions_once() -> None:
    groups = json.loads(EQUAL_VERSIONS_PATH.read_bytes())
    for group in groups:
        assert len(select_distinct_versions(group["versions"])) == 1
    assert len(select_distinct_versions([groups[0]["versions"][0], "another"])) == 2


def test_equal_versions_are_listed_once_and_with_evidence() -> None:
    groups = json.loads(EQUAL_VERSIONS_PATH.read_bytes())
    versions = [version for group in groups for version in group["versions"]]
    assert len(versions) == len(set(versions))
    assert all(len(group["versions"]) > 1 and group["shown_by"] for group in groups)
