"""Grammars of BFCL's tools (Berkeley Function Calling Leaderboard): do they accept right calls only?

`python -m benchmarks.bfcl_grammars` needs the package bfcl-eval, installed without its requirements; only its data
files are read. Each golden call is tried as it is, then without a required field, with a value outside its enum, with a
value of another type, and with the name of no tool. Golden calls that break their tool's own schema, or have a key that
it does not declare, are counted separately and not tried. llguidance runs the grammars. The exit code is 1 if a grammar
refuses a right call or accepts a wrong one.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema_rs

from benchmarks.grammar_matcher import GrammarMatcher, render_call
from toolbench.engine.constraints.compiling import ConstraintOptions, compile_constraint
from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.cases import CATEGORIES, BfclCase, iter_cases
from toolbench.evals.bfcl.golden_answers import BfclCall, build_golden_calls

GRAMMAR_KINDS = ("gbnf", "grammar")
MUTATION_KINDS = ("missing field", "wrong enum", "wrong type", "unknown name")


def try_case(case: BfclCase, counts: Counter[str]) -> Iterator[str]:
    """Try the golden calls of a case; yield a line for each call that a grammar judges wrongly.

    Args:
        case: the case.
        counts: counts the calls by what they are, and by grammar what it does with them.
    """
    options = ConstraintOptions(allows_final=False)
    matchers = {kind: GrammarMatcher(compile_constraint(case.tools, kind, options).grammar) for kind in GRAMMAR_KINDS}
    parameters = {tool["function"]["name"]: tool["function"]["parameters"] for tool in case.tools}
    for name, arguments in build_golden_calls(case):
        schema = parameters[name]
        call = (name, _order_keys(arguments, schema))
        if not jsonschema_rs.is_valid(schema, call[1]):
            counts["against their own schema"] += 1
            continue
        if not jsonschema_rs.is_valid(_close_schema(schema), call[1]):
            counts["with undeclared keys"] += 1
            continue
        counts["right"] += 1
        for grammar_kind, matcher in matchers.items():
            yield from _check_expected(matcher, call, f"{grammar_kind}: taken", taken=True, counts=counts)
        for kind, wrong in iter_mutants(call, schema, tuple(parameters)):
            counts[kind] += 1
            for grammar_kind, matcher in matchers.items():
                yield from _check_expected(matcher, wrong, f"{grammar_kind}: {kind}", taken=False, counts=counts)


def iter_mutants(call: BfclCall, schema: JsonObject, names: Sequence[str]) -> Iterator[tuple[str, BfclCall]]:
    """Yield the call with one fault each, and the kind of the fault, if the schema excludes it."""
    name, arguments = call
    properties = schema.get("properties", {})
    required = [key for key in schema.get("required", ()) if key in arguments]
    if required:
        yield MUTATION_KINDS[0], (name, {key: value for key, value in arguments.items() if key != required[0]})
    listed = [key for key in arguments if "enum" in properties.get(key, {})]
    if listed:
        yield MUTATION_KINDS[1], (name, {**arguments, listed[0]: "no such value"})
    for key in arguments:
        wrong = {**arguments, key: 12345 if properties[key].get("type") == "string" else {"no": "such"}}
        if not jsonschema_rs.is_valid(schema, wrong):
            yield MUTATION_KINDS[2], (name, wrong)
            break
    if f"{name}_x" not in names:
        yield MUTATION_KINDS[3], (f"{name}_x", arguments)


def _check_expected(
    matcher: GrammarMatcher, call: BfclCall, count: str, *, taken: bool, counts: Counter[str]
) -> Iterator[str]:
    if matcher.accepts_call(*call) is taken:
        counts[count] += 1
    else:
        yield f"{count}, but {'refused' if taken else 'accepted'}: {render_call(*call)[:300]}"


def _close_schema(schema: Any) -> Any:
    """Return the schema with other keys than the declared ones forbidden, also in inner objects."""
    if not isinstance(schema, dict):
        return schema
    inner = {name: _close_schema(part) for name, part in schema.get("properties", {}).items()}
    more = {"properties": inner, "additionalProperties": False} if inner else {}
    return {**schema, **more, **({"items": _close_schema(schema["items"])} if "items" in schema else {})}


def _order_keys(value: Any, schema: Any) -> Any:
    """Return the value with the keys of objects in the order of their schema, which grammars require."""
    if isinstance(value, list):
        return [_order_keys(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    order = [*(name for name in properties if name in value), *(name for name in value if name not in properties)]
    return {name: _order_keys(value[name], properties.get(name, {})) for name in order}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl_grammars", description=__doc__)
    parser.add_argument(
        "--sets", nargs="+", choices=CATEGORIES, default=list(CATEGORIES), help="categories (default all)"
    )
    parser.add_argument("--every", type=int, default=1, help="try every n-th case (default 1: all)")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    misjudged = 0
    for name in options.sets:
        counts: Counter[str] = Counter()
        for place, case in enumerate(iter_cases([name])):
            if place % options.every == 0:
                counts["cases"] += 1
                for line in try_case(case, counts):
                    misjudged += 1
                    print(f"  {case.id}: {line}")
        total += counts
        print(name, dict(counts), flush=True)
    print("all", dict(total))
    return min(misjudged, 1)


if __name__ == "__main__":
    sys.exit(main())
