"""Tests of the engine as a package: its imports, and that it defines no tool."""

import importlib
import pkgutil
import subprocess
import sys

import toolbench.engine
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry

MODULES = [found.name for found in pkgutil.walk_packages(toolbench.engine.__path__, "toolbench.engine.")]
FRAMEWORKS = ("django", "celery", "httpx", "aiohttp", "redis", "psycopg")
IMPORT_ALL = """
import importlib, sys
for name in {frameworks}:
    sys.modules[name] = None
for name in {modules}:
    importlib.import_module(name)
"""


def test_engine_modules_import_without_frameworks() -> None:
    code = IMPORT_ALL.format(frameworks=FRAMEWORKS, modules=MODULES)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_engine_modules_define_no_tool() -> None:
    namespaces = [vars(importlib.import_module(name)) for name in MODULES]
    values = [value for namespace in namespaces for value in namespace.values()]
    assert not [value for value in values if isinstance(value, (ToolDefinition, ToolRegistry))]
