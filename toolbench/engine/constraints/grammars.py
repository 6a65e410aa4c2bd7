"""Grammars of whole answers, in GBNF and for llguidance."""

from toolbench.engine.constraints.allowed_answers import AllowedAnswers, build_answer_schema
from toolbench.engine.constraints.format_grammar import FormatGrammar, escape_for_class, find_format_grammar
from toolbench.engine.constraints.gbnf import GbnfGrammar
from toolbench.engine.constraints.gbnf_text import render_json_literal, render_literal, render_repeat
from toolbench.engine.constraints.schema_dedup import deduplicate_schema
from toolbench.engine.constraints.schema_support import SizeLimits
from toolbench.engine.errors import PlanError
from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject

COMPACT_WHITESPACE: JsonObject = {"x-guidance": {"whitespace_flexible": False}}


def build_gbnf(answers: AllowedAnswers, limits: SizeLimits, format: str = "") -> str:
    """Return a grammar for llama.cpp and engines that read its grammars.

    Args:
        answers: the allowed answers, normalised for gbnf.
        limits: limits of strings, lists and white space.
        format: a text format; "" for JSON.

    Raises:
        PlanError: a grammar cannot enforce the format.
    """
    grammar = GbnfGrammar(answers.definitions, limits)
    if format:
        return grammar.text(_build_formatted(grammar, answers, limits, find_format_grammar(format)))
    calls = []
    for name, arguments in answers.calls:
        pairs = [("name", grammar.define("name", render_json_literal(name)), True)]
        calls.append(grammar.object_of([*pairs, ("arguments", grammar.value(arguments), True)]))
    if answers.many > 1:
        listed = grammar.list_of(grammar.define("call", " | ".join(calls)), 1, answers.many)
        calls = [grammar.object_of([("calls", listed, True)])]
    if answers.final is not None:
        calls.append(grammar.object_of([("final", grammar.value(answers.final), True)]))
    return grammar.text(" | ".join(calls))


def _build_formatted(grammar: GbnfGrammar, answers: AllowedAnswers, limits: SizeLimits, form: FormatGrammar) -> str:
    _check_answers(answers, form)
    calls = []
    for name, arguments in answers.calls:
        before, after = form.around(name)
        calls.append(
            " ".join((render_literal(before), grammar.value(arguments), *([render_literal(after)] if after else [])))
        )
    call = grammar.define("call", " | ".join(calls))
    more = grammar.define("more", f"{render_literal(form.layout.between)} {call}") if answers.many > 1 else ""
    several = f" {render_repeat(more, 0, answers.many - 1, grammar.define)}" if more else ""
    written = f"{render_literal(form.layout.before)} {call}{several} {render_literal(form.layout.after)}"
    if answers.final is None:
        return written
    barred = escape_for_class(form.barred)
    if form.behind is not None:
        piece = grammar.define("prose", f'"`"{{0,2}} [^`{barred}]')
        prose = render_repeat(piece, int(not form.behind), limits.max_string, grammar.define)
        written = f"{grammar.define('before', f'{prose} {form.behind}'.strip())}? {written}"
    char = grammar.define("text", f"[^{barred}]")
    return f"{written} | {render_repeat(char, 1, limits.max_string, grammar.define)}"


def build_llguidance(answers: AllowedAnswers, limits: SizeLimits, format: str = "") -> str:
    """Return a grammar in llguidance's Lark, with compact white space; arguments and errors as in `build_gbnf`."""
    if not format:
        schema = {**COMPACT_WHITESPACE, **deduplicate_schema(build_answer_schema(answers))}
        return f"%llguidance {{}}\nstart: %json {write_json(schema)}"
    form = find_format_grammar(format)
    _check_answers(answers, form)
    lines = []
    for place, (name, arguments) in enumerate(answers.calls):
        before, after = form.around(name)
        schema = {**COMPACT_WHITESPACE, **arguments, **({"$defs": answers.definitions} if answers.definitions else {})}
        lines.append(f"call{place}: {quote_lark(before)} arguments{place} {quote_lark(after)}")
        lines.append(f"arguments{place}: %json {write_json(schema)}")
    call = " | ".join(f"call{place}" for place in range(len(answers.calls)))
    layout = form.layout
    several = f" ({quote_lark(layout.between)} call){{0,{answers.many - 1}}}" if answers.many > 1 else ""
    start, text = ("calls", []) if answers.final is None else _build_with_free_text(form, limits.max_string)
    head = ["%llguidance {}", f"start: {start}"]
    head.append(f"calls: {quote_lark(layout.before)} call{several} {quote_lark(layout.after)}")
    head.append(f"call: {call}")
    return "\n".join([*head, *lines, *text])


def _build_with_free_text(form: FormatGrammar, most: int) -> tuple[str, list[str]]:
    """Return the start of an answer that may be free text, and the lexemes of the text."""
    barred = escape_for_class(form.barred)
    text = f"TEXT: /[^{barred}]{{1,{most}}}/"
    if form.behind is None:
        return "calls | TEXT", [text]
    prose = f"PROSE: /(`{{0,2}}[^`{barred}]){{{int(not form.behind)},{most}}}{form.behind}/"
    return "PROSE? calls | TEXT", [text, prose]


def quote_lark(text: str) -> str:
    """Return a text as Lark writes it."""
    return write_json(text)


def _check_answers(answers: AllowedAnswers, form: FormatGrammar) -> None:
    if answers.many > 1 and not form.many:
        raise PlanError("calls of this format differ by their place; a grammar holds one call per answer only")
    if answers.final is not None and not form.barred:
        raise PlanError("nothing tells calls of this format from free text; a grammar needs a tool choice of required")
