"""Version of the engine that runs trials: a digest of its code, so that every change of behaviour changes it."""

import ast
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from toolbench import engine, lab

EQUAL_VERSIONS_PATH = Path(lab.__file__).parent / "data/equal_engine_versions.json"


@cache
def compute_engine_version() -> str:
    """Return the digest of the installed engine: 12 hexadecimal digits."""
    return compute_code_digest(Path(engine.__file__).parent)


def compute_code_digest(folder: Path) -> str:
    """Return a digest of the modules, JSON files and templates below `folder`.

    Comments, docstrings and layout of modules do not change the digest. Names in the code, paths of files and the bytes
    of JSON files and templates do.

    Returns:
        12 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".json", ".jinja")):
        content = _dump_code(path.read_bytes()).encode() if path.suffix == ".py" else path.read_bytes()
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:12]


def select_distinct_versions(versions: Iterable[str]) -> frozenset[str]:
    """Return the given versions, each group of equal ones reduced to one version.

    A group has the versions that behave alike, as a replay has shown; its first version stands for all of them.
    """
    first_of_group = _load_equal_versions()
    return frozenset(first_of_group.get(version, version) for version in versions)


@cache
def _load_equal_versions() -> dict[str, str]:
    """Load EQUAL_VERSIONS_PATH and return, for each version in it, the first version of the same group."""
    groups = [group["versions"] for group in json.loads(EQUAL_VERSIONS_PATH.read_bytes())]
    return {version: group[0] for group in groups for version in group}


def _dump_code(source: bytes) -> str:
    """Return the syntax tree of a module as text, without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            del node.body[0]
    return _dump_node(tree)


def _dump_node(node: object) -> str:
    """Return a node as text, without its empty fields, since newer versions of Python add empty fields."""
    if isinstance(node, ast.AST):
        fields = (f"{name}={_dump_node(value)}" for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({','.join(fields)})"
    return f"[{','.join(map(_dump_node, node))}]" if isinstance(node, list) else repr(node)
