"""Grammars of whole answers: in GBNF, and for llguidance."""

from toolbench.engine.constrain.answers import Answers, as_schema
from toolbench.engine.constrain.dialects import Limits
from toolbench.engine.constrain.forms import Form, form_named, in_class
from toolbench.engine.constrain.gbnf import Grammar
from toolbench.engine.constrain.gbnf_text import json_literal, literal, repeated
from toolbench.engine.constrain.sharing import share_parts
from toolbench.engine.errors import PlanError
from toolbench.engine.json_text import write_json
from toolbench.engine.messages import JsonObject

COMPACT: JsonObject = {"x-guidance": {"whitespace_flexible": False}}


def gbnf(answers: Answers, limits: Limits, format: str = "") -> str:
    """For llama.cpp and those who read its grammars; `answers` in the dialect gbnf. `format` is a text format, "" our
    own JSON. Raises PlanError for a format that no grammar can hold."""
    grammar = Grammar(answers.definitions, limits)
    if format:
        return grammar.text(_formatted(grammar, answers, limits, form_named(format)))
    calls = []
    for name, arguments in answers.calls:
        pairs = [("name", grammar.define("name", json_literal(name)), True)]
        calls.append(grammar.object_of([*pairs, ("arguments", grammar.value(arguments), True)]))
    if answers.many > 1:
        listed = grammar.list_of(grammar.define("call", " | ".join(calls)), 1, answers.many)
        calls = [grammar.object_of([("calls", listed, True)])]
    if answers.final is not None:
        calls.append(grammar.object_of([("final", grammar.value(answers.final), True)]))
    return grammar.text(" | ".join(calls))


def _formatted(grammar: Grammar, answers: Answers, limits: Limits, form: Form) -> str:
    _check(answers, form)
    calls = []
    for name, arguments in answers.calls:
        before, after = form.around(name)
        calls.append(" ".join((literal(before), grammar.value(arguments), *([literal(after)] if after else []))))
    call = grammar.define("call", " | ".join(calls))
    more = grammar.define("more", f"{literal(form.layout.between)} {call}") if answers.many > 1 else ""
    several = f" {repeated(more, 0, answers.many - 1, grammar.define)}" if more else ""
    written = f"{literal(form.layout.before)} {call}{several} {literal(form.layout.after)}"
    if answers.final is None:
        return written
    barred = in_class(form.barred)
    if form.behind is not None:
        piece = grammar.define("prose", f'"`"{{0,2}} [^`{barred}]')
        prose = repeated(piece, int(not form.behind), limits.max_string, grammar.define)
        written = f"{grammar.define('before', f'{prose} {form.behind}'.strip())}? {written}"
    char = grammar.define("text", f"[^{barred}]")
    return f"{written} | {repeated(char, 1, limits.max_string, grammar.define)}"


def llguidance(answers: Answers, limits: Limits, format: str = "") -> str:
    """In llguidance's Lark, with compact white space; `answers` in the dialect grammar. Takes and raises as `gbnf`."""
    if not format:
        return f"%llguidance {{}}\nstart: %json {write_json({**COMPACT, **share_parts(as_schema(answers))})}"
    form = form_named(format)
    _check(answers, form)
    lines = []
    for place, (name, arguments) in enumerate(answers.calls):
        before, after = form.around(name)
        schema = {**COMPACT, **arguments, **({"$defs": answers.definitions} if answers.definitions else {})}
        lines.append(f"call{place}: {json_text(before)} arguments{place} {json_text(after)}")
        lines.append(f"arguments{place}: %json {write_json(schema)}")
    call = " | ".join(f"call{place}" for place in range(len(answers.calls)))
    layout = form.layout
    several = f" ({json_text(layout.between)} call){{0,{answers.many - 1}}}" if answers.many > 1 else ""
    start, text = ("calls", []) if answers.final is None else _beside_text(form, limits.max_string)
    head = ["%llguidance {}", f"start: {start}"]
    head.append(f"calls: {json_text(layout.before)} call{several} {json_text(layout.after)}")
    head.append(f"call: {call}")
    return "\n".join([*head, *lines, *text])


def _beside_text(form: Form, most: int) -> tuple[str, list[str]]:
    """What an answer is where free text is allowed, and the lexemes of that text."""
    barred = in_class(form.barred)
    text = f"TEXT: /[^{barred}]{{1,{most}}}/"
    if form.behind is None:
        return "calls | TEXT", [text]
    prose = f"PROSE: /(`{{0,2}}[^`{barred}]){{{int(not form.behind)},{most}}}{form.behind}/"
    return "PROSE? calls | TEXT", [text, prose]


def json_text(text: str) -> str:
    """A text as Lark spells it."""
    return write_json(text)


def _check(answers: Answers, form: Form) -> None:
    if answers.many > 1 and not form.many:
        raise PlanError("calls of this format differ by their place; a grammar holds one call per answer only")
    if answers.final is not None and not form.barred:
        raise PlanError("nothing tells calls of this format from free text; a grammar needs a tool choice of required")
