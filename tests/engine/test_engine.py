"""What holds for the room as a whole."""

import importlib
import pkgutil
import subprocess
import sys

import toolbench.engine
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry

MODULES = [found.name for found in pkgutil.walk_packages(toolbench.engine.__path__, "toolbench.engine.")]
OUTSIDE = ("django", "celery", "httpx", "aiohttp", "redis", "psycopg")
IMPORT_ALL = """
import importlib, sys
for name in {outside}:
    sys.modules[name] = None
for name in {modules}:
    importlib.import_module(name)
"""


def test_the_engine_imports_where_no_framework_can_be_imported() -> None:
    code = IMPORT_ALL.format(outside=OUTSIDE, modules=MODULES)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_engine_ships_no_tool() -> None:
    held = [vars(importlib.import_module(name)) for name in MODULES]
    values = [value for module in held for value in module.values()]
    assert not [value for value in values if isinstance(value, (ToolDefinition, ToolRegistry))]
