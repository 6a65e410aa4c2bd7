"""Whether our grammars take every call that the Berkeley Function Calling Leaderboard holds for right, and refuse it
once something is wrong with it.

`python -m benchmarks.bfcl_grammars`. Needs the package bfcl-eval, installed without its requirements; only its data
files are read. Each right call is tried as it stands, then with a required field left out, a value outside its enum, a
value of another type, and the name of no tool. Calls that are right for the leaderboard but break their tool's own
schema, or name what it does not declare, are counted apart and not tried. llguidance runs the grammars."""

import argparse
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
    """Counts what became of a case's calls, and tells of those that were not as they should be."""
    asked = ConstraintOptions(allows_final=False)
    oracles = {way: GrammarMatcher(compile_constraint(case.tools, way, asked).grammar) for way in GRAMMAR_KINDS}
    parameters = {tool["function"]["name"]: tool["function"]["parameters"] for tool in case.tools}
    for name, given in build_golden_calls(case):
        schema = parameters[name]
        call = (name, _order_keys(given, schema))
        if not jsonschema_rs.is_valid(schema, call[1]):
            counts["against their own schema"] += 1
            continue
        if not jsonschema_rs.is_valid(_close_schema(schema), call[1]):
            counts["name what is not declared"] += 1
            continue
        counts["right"] += 1
        for way, oracle in oracles.items():
            yield from _check_expected(oracle, call, f"{way}: taken", taken=True, counts=counts)
        for kind, wrong in iter_mutants(call, schema, tuple(parameters)):
            counts[kind] += 1
            for way, oracle in oracles.items():
                yield from _check_expected(oracle, wrong, f"{way}: {kind}", taken=False, counts=counts)


def iter_mutants(call: BfclCall, schema: JsonObject, names: Sequence[str]) -> Iterator[tuple[str, BfclCall]]:
    """The call with one thing wrong, as far as its schema knows better."""
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
    oracle: GrammarMatcher, call: BfclCall, count: str, *, taken: bool, counts: Counter[str]
) -> Iterator[str]:
    if oracle.accepts_call(*call) is taken:
        counts[count] += 1
    else:
        yield f"{count} {'not taken' if taken else 'taken'}: {render_call(*call)[:300]}"


def _close_schema(schema: Any) -> Any:
    """The same without keys that it does not declare."""
    if not isinstance(schema, dict):
        return schema
    inner = {name: _close_schema(part) for name, part in schema.get("properties", {}).items()}
    more = {"properties": inner, "additionalProperties": False} if inner else {}
    return {**schema, **more, **({"items": _close_schema(schema["items"])} if "items" in schema else {})}


def _order_keys(value: Any, schema: Any) -> Any:
    """The same with the keys of objects in the order of their schema, as grammars have them."""
    if isinstance(value, list):
        return [_order_keys(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    order = [*(name for name in properties if name in value), *(name for name in value if name not in properties)]
    return {name: _order_keys(value[name], properties.get(name, {})) for name in order}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl_grammars", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=CATEGORIES, default=list(CATEGORIES))
    parser.add_argument("--every", type=int, default=1, help="only every so many questions (default 1: all)")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for name in options.sets:
        counts: Counter[str] = Counter()
        for place, case in enumerate(iter_cases([name])):
            if place % options.every == 0:
                counts["questions"] += 1
                for wrong in try_case(case, counts):
                    print(f"  {case.id}: {wrong}")
        total += counts
        print(name, dict(counts), flush=True)
    print("all", dict(total))


if __name__ == "__main__":
    main()
