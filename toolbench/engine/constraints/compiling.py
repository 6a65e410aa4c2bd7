"""Compilation of tools to a constraint: fields of a request, cached by tools and options."""

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field

from llguidance import LLMatcher

from toolbench.engine.constraints.allowed_answers import AllowedAnswers, build_allowed_answers, build_answer_schema
from toolbench.engine.constraints.dropped_keywords import DroppedKeyword
from toolbench.engine.constraints.grammars import build_gbnf, build_llguidance
from toolbench.engine.constraints.schema_support import GBNF_SUPPORT, SCHEMA_SUPPORT, TOOL_CONSTRAINTS, SizeLimits
from toolbench.engine.constraints.strict import build_strict_tools
from toolbench.engine.errors import PlanError
from toolbench.engine.sized_cache import SizedCache, estimate_bytes
from toolbench.engine.tools.definitions import StoredToolDefinition
from toolbench.engine.tools.validation import check_schema
from toolbench.engine.types import JsonObject

CACHE_SIZE = 128  # compiled constraints


@dataclass(frozen=True, slots=True)
class ConstraintOptions:
    """Options of a constraint.

    Attributes:
        allows_final: whether a final text is allowed.
        max_calls: maximum number of calls in one answer.
        text_format: name of the text format that a grammar enforces; "" for JSON.
        limits: limits of strings and lists whose schema has none, and of white space.
    """

    allows_final: bool = True
    max_calls: int = 1
    text_format: str = ""
    limits: SizeLimits = field(default_factory=SizeLimits)


@dataclass(frozen=True, slots=True)
class CompiledConstraint:
    """A compiled constraint.

    Attributes:
        request_fields: fields of the request body; shared, so callers must not change them.
        dropped_keywords: keywords of the tools' schemas that are not enforced.
        grammar: text of the grammar; "" for a constraint without a grammar.
    """

    request_fields: JsonObject
    dropped_keywords: tuple[DroppedKeyword, ...]
    grammar: str = ""


def compile_constraint(
    tools_json: Sequence[JsonObject], constraint: str, options: ConstraintOptions
) -> CompiledConstraint:
    """Return the constraint that restricts an answer to calls of these tools, or a final text.

    The result is cached.

    Args:
        tools_json: the tools that may be called, in OpenAI's format.
        constraint: name of the constraint, a key of SCHEMA_SUPPORT.
        options: the options; for the constraints of TOOL_CONSTRAINTS only `limits` has an effect.

    Raises:
        PlanError: the constraint or the text format is unknown, the schema of a tool cannot be used, llguidance refuses
            the grammar, or the constraint cannot enforce the text format for these answers.
    """
    if constraint not in SCHEMA_SUPPORT:
        raise PlanError(f"no constraint is called {constraint!r}; known are {', '.join(SCHEMA_SUPPORT)}")
    try:
        pickled_tools = _build_cache_key(tools_json)
        return _compiled_constraints.get(
            (pickled_tools, constraint, options), lambda: _compile_measured(pickled_tools, constraint, options)
        )
    except RecursionError:
        raise PlanError("the schema of a tool is nested too deeply, or has a name that is too long") from None
    except (AttributeError, KeyError, TypeError, ValueError):  # such as a `maxLength` that is no number
        _check_schemas(tools_json)
        raise


def _check_schemas(tools_json: Sequence[JsonObject]) -> None:
    """Check that the tools have valid schemas.

    Raises:
        PlanError: the schema of a tool cannot be used.
    """
    for function in (tool["function"] for tool in tools_json):
        check_schema(StoredToolDefinition(str(function["name"]), "", function.get("parameters") or {}))


def _build_cache_key(tools_json: Sequence[JsonObject]) -> bytes:
    """Return the tools as bytes. They are pickled, since `pickle` is faster than JSON.

    With `fast`, an object that occurs twice is written twice instead of as a reference. So the bytes do not depend on
    which equal parts of the tools are the same Python object.
    """
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True
    pickler.dump(list(tools_json))
    return buffer.getvalue()


_compiled_constraints: SizedCache[tuple[bytes, str, ConstraintOptions], CompiledConstraint]
_compiled_constraints = SizedCache(max_entries=CACHE_SIZE)


def _compile_measured(
    pickled_tools: bytes, constraint: str, options: ConstraintOptions
) -> tuple[CompiledConstraint, int]:
    """Return the constraint, and the bytes that it and its tools take in memory."""
    compiled = _compile(pickled_tools, constraint, options)
    return compiled, len(pickled_tools) + estimate_bytes(compiled.request_fields)


def _compile(pickled_tools: bytes, constraint: str, options: ConstraintOptions) -> CompiledConstraint:
    """Return the constraint for the tools that `_build_cache_key` pickled."""
    tools_json = pickle.loads(pickled_tools)
    support = SCHEMA_SUPPORT[constraint]
    if constraint in TOOL_CONSTRAINTS:
        strict_tools, dropped_keywords = build_strict_tools(tools_json, options.limits, support)
        return CompiledConstraint({"tools": strict_tools}, dropped_keywords)
    answers = build_allowed_answers(
        tools_json,
        allows_final=options.allows_final,
        support=support,
        limits=options.limits,
        max_calls=options.max_calls,
    )
    if constraint == "grammar":
        grammar_text = build_llguidance(answers, options.limits, options.text_format)
        _check_grammar(grammar_text)
        return CompiledConstraint({"grammar": grammar_text}, answers.dropped_keywords, grammar_text)
    if support is GBNF_SUPPORT:
        grammar_text = build_gbnf(answers, options.limits, options.text_format)
        return CompiledConstraint(
            _build_grammar_fields(constraint, grammar_text), answers.dropped_keywords, grammar_text
        )
    if options.text_format:
        raise PlanError(f"the constraint {constraint} enforces JSON only, not the text format {options.text_format}")
    return CompiledConstraint(_build_schema_fields(constraint, answers), answers.dropped_keywords)


def _check_grammar(grammar: str) -> None:
    """Check that llguidance accepts the grammar, because llama.cpp ignores one that its llguidance refuses.

    Raises:
        PlanError: llguidance refuses the grammar.
    """
    is_invalid, messages = LLMatcher.validate_grammar_with_warnings(grammar)
    if is_invalid:
        raise PlanError(f"llguidance refuses the grammar of these tools: {messages[0].splitlines()[0]}")


def _build_grammar_fields(constraint: str, grammar_text: str) -> JsonObject:
    if constraint == "fireworks_grammar":
        return {"response_format": {"type": "grammar", "grammar": grammar_text}}
    if constraint == "structured_grammar":
        return {"structured_outputs": {"grammar": grammar_text}}
    return {"ebnf" if constraint == "ebnf" else "grammar": grammar_text}


def _build_schema_fields(constraint: str, answers: AllowedAnswers) -> JsonObject:
    """Return the request fields of a constraint that is a JSON Schema."""
    if constraint == "structured_outputs":
        return {"structured_outputs": {"json": build_answer_schema(answers)}}
    if constraint == "output_config":
        schema = build_answer_schema(answers, limits_call_count=False)
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    if constraint == "tgi_grammar":
        return {"response_format": {"type": "json", "value": build_answer_schema(answers)}}
    is_strict = constraint == "strict"
    named_schema: JsonObject = {"name": "answer", "schema": build_answer_schema(answers, is_object_required=is_strict)}
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {**named_schema, **({"strict": True} if is_strict else {})},
        }
    }
