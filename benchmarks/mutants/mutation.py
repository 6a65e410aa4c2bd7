"""Mutants of a module: the same source with one operator, constant or branch changed."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
NEGATED_BY_COMPARISON = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
# The type checker reads annotations; decision 013 leaves frozen classes to it, and so the arguments of decorators.
UNMUTATED_FIELDS = {"annotation", "returns", "decorator_list"}
BODY_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
FLOAT_FACTOR = 1.1
CONTEXT_CHARACTERS = 120

Slot = tuple[ast.AST, str, int | None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """Change of one place in a module.

    Attributes:
        path: the module, relative to the root of the tree.
        index: position among all mutants of the module.
        kind: comparison, boolean, constant, plus and minus, or swapped branches.
        scope: qualified name of the function or class, "" for the module itself.
        before: normalised source around the change, if possible at most `CONTEXT_CHARACTERS`.
        after: the same source with the change.
        occurrence: 1 for the first mutant of this scope with this text, 2 for the second.
    """

    path: str
    index: int
    kind: str
    line: int
    scope: str
    before: str
    after: str
    occurrence: int

    @property
    def name(self) -> str:
        """Name that does not depend on line numbers and on changes elsewhere in the module."""
        number = f" #{self.occurrence}" if self.occurrence > 1 else ""
        return f"{self.path}:{self.scope}: {self.before} -> {self.after}{number}"


@dataclass(frozen=True, slots=True)
class _Edit:
    """Replacement of the node in `slot`. `parents` are the enclosing nodes, the outermost first."""

    kind: str
    slot: Slot
    replacement: ast.AST
    parents: tuple[ast.AST, ...]

    def apply(self) -> None:
        _fill_slot(self.slot, self.replacement)


def find_mutants(root: Path, path: str) -> list[Mutant]:
    """Return every mutant of the module at `path`, in source order."""
    found: list[Mutant] = []
    seen: Counter[tuple[str, str, str]] = Counter()
    for index, edit in enumerate(_iter_edits(ast.parse((root / path).read_text()))):
        original = _get_node(edit.slot)
        context = _find_context(edit, original)
        scope = ".".join(
            node.name
            for node in edit.parents
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        )
        before = _render_node(context)
        edit.apply()
        after = _render_node(edit.replacement if context is original else context)
        _fill_slot(edit.slot, original)
        seen[scope, before, after] += 1
        line = getattr(original, "lineno", 0)
        found.append(Mutant(path, index, edit.kind, line, scope, before, after, seen[scope, before, after]))
    return found


def build_mutated_tree(source: str, index: int) -> ast.Module:
    """Return the parsed module with the mutant of this index applied."""
    tree = ast.parse(source)
    for number, edit in enumerate(_iter_edits(tree)):
        if number == index:
            edit.apply()
            return ast.fix_missing_locations(tree)
    raise IndexError(f"The module has no mutant {index}.")


def _iter_edits(node: ast.AST, parents: tuple[ast.AST, ...] = ()) -> Iterator[_Edit]:
    """Yield the edits of a tree, depth first. An edit may be applied if it is undone before the next one."""
    parents = (*parents, node)
    for name, value in ast.iter_fields(node):
        if name in UNMUTATED_FIELDS or not isinstance(value, ast.AST | list):
            continue
        children = [(None, value)] if isinstance(value, ast.AST) else list(enumerate(value))
        for place, child in children:
            if not isinstance(child, ast.AST) or _is_strict_zip(node, child):
                continue
            for kind, replacement in _iter_replacements(child):
                yield _Edit(kind, (node, name, place), ast.copy_location(replacement, child), parents)
            if name in {"test", "ifs"} and isinstance(node, ast.If | ast.IfExp | ast.comprehension):
                for negated in _iter_negations(child):
                    yield _Edit("swapped branches", (node, name, place), ast.copy_location(negated, child), parents)
            yield from _iter_edits(child, parents)


def _is_strict_zip(node: ast.AST, child: ast.AST) -> bool:
    """Return whether a keyword is the `strict` of `zip`, which only checks the code, as an assertion does."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "zip"
        and isinstance(child, ast.keyword)
    )


def _iter_replacements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left, ops, comparators):
            for place, operator in enumerate(ops):
                other = COMPARISONS[type(operator)]()
                yield "comparison", ast.Compare(left, [*ops[:place], other, *ops[place + 1 :]], comparators)
        case ast.BoolOp(operator, values):
            yield "boolean", ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield "boolean", operand
        case ast.UnaryOp(ast.USub(), operand):
            yield "plus and minus", operand
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
            yield "plus and minus", ast.BinOp(left, _get_opposite(operator), right)
        case ast.AugAssign(target, ast.Add() | ast.Sub() as operator, value):
            yield "plus and minus", ast.AugAssign(target, _get_opposite(operator), value)
        case ast.Constant(value):
            yield from _iter_other_constants(value)


def _iter_other_constants(value: object) -> Iterator[tuple[str, ast.AST]]:
    match value:
        case bool():
            yield "boolean", ast.Constant(not value)
        case int():
            yield "constant", ast.Constant(value + 1)
            yield "constant", ast.Constant(value - 1)
        case float():
            yield "constant", ast.Constant(value * FLOAT_FACTOR if value else 1.0)


def _iter_negations(test: ast.AST) -> Iterator[ast.AST]:
    """Yield the negated condition, unless the mutant of its own operator is the same."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], NEGATED_BY_COMPARISON):
        return
    if isinstance(test, ast.expr):
        yield ast.UnaryOp(ast.Not(), test)


def _get_opposite(operator: ast.operator) -> ast.operator:
    return ast.Sub() if isinstance(operator, ast.Add) else ast.Add()


def _get_node(slot: Slot) -> ast.AST:
    owner, name, place = slot
    value = getattr(owner, name)
    node = value if place is None else value[place]
    assert isinstance(node, ast.AST)
    return node


def _fill_slot(slot: Slot, node: ast.AST) -> None:
    owner, name, place = slot
    if place is None:
        setattr(owner, name, node)
    else:
        getattr(owner, name)[place] = node


def _find_context(edit: _Edit, original: ast.AST) -> ast.AST:
    """Return the largest enclosing node, up to the statement, whose source is short."""
    context = original
    for node in reversed(edit.parents):
        if isinstance(context, ast.stmt) or not isinstance(node, ast.stmt | ast.expr | ast.keyword | ast.comprehension):
            break
        if len(_render_node(node)) > CONTEXT_CHARACTERS:
            break
        context = node
    return context


def _render_node(node: ast.AST) -> str:
    """Return the source of a node; of a compound statement only its head."""
    bodies = {name: getattr(node, name) for name in BODY_FIELDS if isinstance(getattr(node, name, None), list)}
    for name in bodies:
        setattr(node, name, [])
    try:
        return " ".join(ast.unparse(node).split())
    finally:
        for name, value in bodies.items():
            setattr(node, name, value)
