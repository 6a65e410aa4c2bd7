"""Tests of the code in the documentation: names that examples import, and source files that pages name."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = (*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *sorted((ROOT / "docs").glob("*.md")))
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
SOURCE_FILE = re.compile(r"`((?:toolbench|tests|benchmarks|templates|static)/[\w./-]+\.\w+)`")


def list_missing_imports(source: str) -> list[str]:
    """Return the names that the code imports from `toolbench` and that do not exist, as `module.name`."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names = [(node.module, alias.name) for node in imports for alias in node.names if node.module]
    return [f"{module}.{name}" for module, name in names if module.startswith("toolbench") and not exists(module, name)]


def exists(module: str, name: str) -> bool:
    path = ROOT.joinpath(*module.split("."), name)
    return path.with_suffix(".py").is_file() or path.is_dir() or hasattr(importlib.import_module(module), name)


def list_examples(page: Path) -> list[str]:
    """Return the Python examples of a page, without prompts and results of an interpreter session."""
    blocks = PYTHON_BLOCK.findall(page.read_text("utf-8"))
    sessions = [[line[4:] for line in block.splitlines() if line[:4] in (">>> ", "... ")] for block in blocks]
    return ["\n".join(session) if session else block for block, session in zip(blocks, sessions, strict=True)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_example_imports_only_existing_names(page: Path) -> None:
    assert [name for source in list_examples(page) for name in list_missing_imports(source)] == []


def test_list_missing_imports_names_a_missing_name() -> None:
    source = "from toolbench.engine.errors import PlanError, NoSuchError"
    assert list_missing_imports(source) == ["toolbench.engine.errors.NoSuchError"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_names_only_existing_source_files(page: Path) -> None:
    names = sorted(set(SOURCE_FILE.findall(page.read_text("utf-8"))))
    assert [name for name in names if not (ROOT / name).exists()] == []
