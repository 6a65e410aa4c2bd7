"""Mutants of a source file: which exist, their names, and their syntax trees."""

import ast
from pathlib import Path

import pytest

from benchmarks.mutants.mutation import CONTEXT_CHARACTERS, Mutant, build_mutated_tree, find_mutants


def write_and_find_mutants(folder: Path, source: str) -> list[Mutant]:
    (folder / "m.py").write_text(source)
    return find_mutants(folder, "m.py")


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", [("comparison", "a <= b")]),
        ("a == b", [("comparison", "a != b")]),
        ("a <= b < c", [("comparison", "a < b < c"), ("comparison", "a <= b <= c")]),
        ("a not in b", [("comparison", "a in b")]),
        ("a and b", [("boolean", "a or b")]),
        ("not a", [("boolean", "a")]),
        ("x = True", [("boolean", "x = False")]),
        ("LEAST = 60", [("constant", "LEAST = 61"), ("constant", "LEAST = 59")]),
        ("x = 0.5", [("constant", "x = 0.55")]),
        ("a + b", [("plus and minus", "a - b")]),
        ("a -= b", [("plus and minus", "a += b")]),
        ("-a", [("plus and minus", "a")]),
        ("if a: b", [("swapped branches", "if not a:")]),
        ("a if b else c", [("swapped branches", "a if not b else c")]),
        ("[a for a in b if c]", [("swapped branches", "[a for a in b if not c]")]),
        ("f'{a + b}'", [("plus and minus", "f'{a - b}'")]),
    ],
)
def test_find_mutants_lists_kind_and_source(tmp_path: Path, source: str, changed: list[tuple[str, str]]) -> None:
    assert [(mutant.kind, mutant.after) for mutant in write_and_find_mutants(tmp_path, source)] == changed


@pytest.mark.parametrize("source", ["if a == b: c", "if not a: b", "a if b is c else d"])
def test_find_mutants_omits_branch_swap_equal_to_operator_mutant(tmp_path: Path, source: str) -> None:
    assert len(write_and_find_mutants(tmp_path, source)) == 1


@pytest.mark.parametrize(
    "source",
    ["x: 'Literal[1]'", "def f(a: g(1)) -> g(2): ...", "@f(1)\ndef g(): ...", "x = 'a'", "zip(a, b, strict=True)"],
)
def test_find_mutants_skips_types_decorators_texts_and_strict_zips(tmp_path: Path, source: str) -> None:
    assert write_and_find_mutants(tmp_path, source) == []


def test_mutant_name_survives_changes_elsewhere(tmp_path: Path) -> None:
    source = "def f(a):\n    return a > 1\n"
    alone = [mutant.name for mutant in write_and_find_mutants(tmp_path, source)]
    moved = [mutant.name for mutant in write_and_find_mutants(tmp_path, f"X = 3\n\n{source}")]
    assert alone[0] == "m.py:f: return a > 1 -> return a >= 1"
    assert moved[2:] == alone


def test_mutant_name_numbers_equal_changes_of_one_scope(tmp_path: Path) -> None:
    names = [mutant.name for mutant in write_and_find_mutants(tmp_path, "a < b\na < b\n")]
    assert names == ["m.py:: a < b -> a <= b", "m.py:: a < b -> a <= b #2"]


def test_mutant_name_shortens_long_statement(tmp_path: Path) -> None:
    filler = ", ".join(f"name_{n}" for n in range(40))
    found = write_and_find_mutants(tmp_path, f"x = [{filler}, f(1)]")
    assert [mutant.after for mutant in found] == ["f(2)", "f(0)"]
    assert all(len(mutant.before) <= CONTEXT_CHARACTERS for mutant in found)


def test_build_mutated_tree_applies_only_the_indexed_change(tmp_path: Path) -> None:
    source = "def f(a, b=2):\n    if a and b > 0:\n        return a + b\n    return -1\n"
    found = write_and_find_mutants(tmp_path, source)
    sources = [ast.unparse(build_mutated_tree(source, mutant.index)) for mutant in found]
    assert len({*sources, ast.unparse(ast.parse(source))}) == len(found) + 1
    for mutant, mutated in zip(found, sources, strict=True):
        assert mutant.after in mutated
    with pytest.raises(IndexError, match="no mutant"):
        build_mutated_tree(source, len(found))
