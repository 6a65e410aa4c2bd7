"""From tools to what is put into a request, once per set of tools."""

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from llguidance import LLMatcher

from toolbench.engine.constrain.answers import Answers, answers_of, as_schema
from toolbench.engine.constrain.dialects import DIALECTS, GBNF, OF_TOOLS, Limits
from toolbench.engine.constrain.dropping import Dropped
from toolbench.engine.constrain.grammars import gbnf, llguidance
from toolbench.engine.constrain.strict import strict_tools
from toolbench.engine.errors import PlanError
from toolbench.engine.messages import JsonObject

KEPT = 128  # compiled sets of tools


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer is held to. `final`: a final text is allowed. `many`: calls one answer may hold. `format`: the
    text format of a grammar, "" for our own JSON."""

    final: bool = True
    many: int = 1
    format: str = ""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Compiled:
    """`fields` go into the request's body and are never changed; `grammar` is the text of a grammar, "" for a
    schema."""

    fields: JsonObject
    dropped: tuple[Dropped, ...]
    grammar: str = ""


def compile_constraint(tools_json: Sequence[JsonObject], constraint: str, asked: Asked) -> Compiled:
    """What holds an answer to calls of these tools. Equal sets of tools are compiled once. Raises PlanError for an
    unknown constraint, a schema that cannot be used, or a text format where the endpoint is held by a schema."""
    if constraint not in DIALECTS:
        raise PlanError(f"no constraint is called {constraint!r}; known are {', '.join(DIALECTS)}")
    return _compiled(_key(tools_json), constraint, asked)


def _key(tools_json: Sequence[JsonObject]) -> bytes:
    """The tools as bytes, quicker than JSON; `fast` makes them the same whichever parts are one object."""
    written = io.BytesIO()
    pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True
    pickler.dump(list(tools_json))
    return written.getvalue()


@lru_cache(maxsize=KEPT)
def _compiled(tools: bytes, constraint: str, asked: Asked) -> Compiled:
    tools_json = pickle.loads(tools)
    dialect = DIALECTS[constraint]
    if constraint in OF_TOOLS:
        strict, dropped = strict_tools(tools_json, asked.limits, dialect)
        return Compiled({"tools": strict}, dropped)
    answers = answers_of(tools_json, final=asked.final, dialect=dialect, limits=asked.limits, many=asked.many)
    if constraint == "grammar":
        text = llguidance(answers, asked.limits, asked.format)
        _check(text)
        return Compiled({"grammar": text}, answers.dropped, text)
    if dialect is GBNF:
        text = gbnf(answers, asked.limits, asked.format)
        return Compiled(_grammar_fields(constraint, text), answers.dropped, text)
    if asked.format:
        raise PlanError(f"{constraint} holds JSON only, not the format {asked.format}")
    return Compiled(_schema_fields(constraint, answers), answers.dropped)


def _check(grammar: str) -> None:
    """Raises PlanError for a grammar that llguidance does not take: llama.cpp would answer without any constraint."""
    failed, messages = LLMatcher.validate_grammar_with_warnings(grammar)
    if failed:
        raise PlanError(f"llguidance does not take the grammar of these tools: {messages[0].splitlines()[0]}")


def _grammar_fields(constraint: str, text: str) -> JsonObject:
    if constraint == "fireworks_grammar":
        return {"response_format": {"type": "grammar", "grammar": text}}
    if constraint == "structured_grammar":
        return {"structured_outputs": {"grammar": text}}
    return {"ebnf" if constraint == "ebnf" else "grammar": text}


def _schema_fields(constraint: str, answers: Answers) -> JsonObject:
    if constraint == "structured_outputs":
        return {"structured_outputs": {"json": as_schema(answers)}}
    if constraint == "output_config":
        schema = as_schema(answers, counted=False)
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    if constraint == "tgi_grammar":
        return {"response_format": {"type": "json", "value": as_schema(answers)}}
    strict = constraint == "strict"
    named: JsonObject = {"name": "answer", "schema": as_schema(answers, one_object=strict)}
    return {
        "response_format": {"type": "json_schema", "json_schema": {**named, **({"strict": True} if strict else {})}}
    }
