"""Tests of names in the benchmarks that neither an import nor the type checker follows: texts, documents, commands."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from toolbench.installation import ROOT

PACKAGES = ("benchmarks", "tests", "toolbench")
SOURCES = sorted((ROOT / "benchmarks").rglob("*.py"))
DOCUMENT = ROOT / "docs" / "benchmarks.md"
DOCUMENTED_ROW = re.compile(r"^\| `(?:nice -n 19 )?python -m (benchmarks[\w.]*)[^`]*` \| (.*) \|$", re.MULTILINE)
DOTTED_NAME = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
IMPORT_ALL = """
import importlib, json, sys, traceback
errors = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception:
        errors[name] = traceback.format_exc()
print(json.dumps(errors))
"""


def name_module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def find_file(module: str) -> Path | None:
    """Return the file of a module, for a package its `__init__.py`; None if there is none."""
    path = ROOT.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()), None)


def iter_module_names(source: str) -> Iterator[str]:
    """Yield the texts of a source that are as a whole the dotted name of a module of this project."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED_NAME.fullmatch(node.value):
            yield node.value


def test_module_names_in_benchmarks_exist() -> None:
    names = {name: path.name for path in SOURCES for name in iter_module_names(path.read_text())}
    assert {"benchmarks.stored_run", "benchmarks.fuzz.targets", "toolbench.gateway"} <= names.keys()
    assert {name: file for name, file in names.items() if find_file(name) is None} == {}


def test_iter_module_names_ignores_other_texts() -> None:
    source = 'run("benchmarks.no_such", "python -m benchmarks.loop", "tests", f"toolbench.{name}")'
    assert list(iter_module_names(source)) == ["benchmarks.no_such"]
    assert find_file("benchmarks.no_such") is None


def test_documented_benchmarks_exist_with_their_options() -> None:
    rows = DOCUMENTED_ROW.findall(DOCUMENT.read_text())
    assert len(rows) > 20
    missing = []
    for module, text in rows:
        file = find_file(f"{module}.__main__") or find_file(module)
        source = file.read_text() if file else ""
        options = re.findall(r"`(--[a-z-]+)", text)
        missing += [f"{module} {option}" for option in options if f'"{option}"' not in source]
        missing += [] if "argparse" in source or not options else [module]
        missing += [] if '__name__ == "__main__"' in source else [module]
    assert missing == []


def test_every_benchmark_module_can_be_imported() -> None:
    modules = [name_module(path) for path in SOURCES]
    assert "benchmarks.fuzz.__main__" in modules
    command = [sys.executable, "-W", "ignore", "-c", IMPORT_ALL, *modules]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == {}
