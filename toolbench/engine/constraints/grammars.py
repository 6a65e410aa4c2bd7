"""Grammars of complete answers, in GBNF and for llguidance."""

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
    """Return a grammar in GBNF, for llama.cpp and engines that accept its grammars.

    Args:
        answers: the allowed answers, normalised for GBNF_SUPPORT.
        limits: limits of strings, lists and white space.
        format: a text format; "" for JSON.

    Raises:
        PlanError: a grammar cannot enforce the format.
    """
    grammar = GbnfGrammar(answers.definitions, limits)
    if format:
        return grammar.render(_build_format_root(grammar, answers, limits, find_format_grammar(format)))
    alternatives = []
    for name, arguments in answers.calls:
        pairs = [("name", grammar.define("name", render_json_literal(name)), True)]
        alternatives.append(grammar.define_object([*pairs, ("arguments", grammar.define_value(arguments), True)]))
    if answers.max_calls > 1:
        call_list = grammar.define_list(grammar.define("call", " | ".join(alternatives)), 1, answers.max_calls)
        alternatives = [grammar.define_object([("calls", call_list, True)])]
    if answers.final is not None:
        alternatives.append(grammar.define_object([("final", grammar.define_value(answers.final), True)]))
    return grammar.render(" | ".join(alternatives))


def _build_format_root(grammar: GbnfGrammar, answers: AllowedAnswers, limits: SizeLimits, form: FormatGrammar) -> str:
    """Return the body of the start rule for answers in a text format: calls, or free text if it is allowed."""
    _check_answers(answers, form)
    calls = []
    for name, arguments in answers.calls:
        before, after = form.split_around_arguments(name)
        calls.append(
            " ".join(
                (render_literal(before), grammar.define_value(arguments), *([render_literal(after)] if after else []))
            )
        )
    call = grammar.define("call", " | ".join(calls))
    further_call = (
        grammar.define("more", f"{render_literal(form.layout.between)} {call}") if answers.max_calls > 1 else ""
    )
    further_calls = f" {render_repeat(further_call, 0, answers.max_calls - 1, grammar.define)}" if further_call else ""
    answer = f"{render_literal(form.layout.before)} {call}{further_calls} {render_literal(form.layout.after)}"
    if answers.final is None:
        return answer
    barred_character = escape_for_class(form.barred)
    if form.text_end is not None:
        prose_part = grammar.define("prose", f'"`"{{0,2}} [^`{barred_character}]')
        prose = render_repeat(prose_part, int(not form.text_end), limits.max_string, grammar.define)
        answer = f"{grammar.define('before', f'{prose} {form.text_end}'.strip())}? {answer}"
    text_character = grammar.define("text", f"[^{barred_character}]")
    return f"{answer} | {render_repeat(text_character, 1, limits.max_string, grammar.define)}"


def build_llguidance(answers: AllowedAnswers, limits: SizeLimits, format: str = "") -> str:
    """Return a grammar in llguidance's Lark, with compact white space; arguments and errors as in `build_gbnf`."""
    if not format:
        schema = {**COMPACT_WHITESPACE, **deduplicate_schema(build_answer_schema(answers))}
        return f"%llguidance {{}}\nstart: %json {write_json(schema)}"
    form = find_format_grammar(format)
    _check_answers(answers, form)
    call_lines = []
    for index, (name, arguments) in enumerate(answers.calls):
        before, after = form.split_around_arguments(name)
        schema = {**COMPACT_WHITESPACE, **arguments, **({"$defs": answers.definitions} if answers.definitions else {})}
        call_lines.append(f"call{index}: {quote_lark(before)} arguments{index} {quote_lark(after)}")
        call_lines.append(f"arguments{index}: %json {write_json(schema)}")
    call = " | ".join(f"call{index}" for index in range(len(answers.calls)))
    layout = form.layout
    further_calls = (
        f" ({quote_lark(layout.between)} call){{0,{answers.max_calls - 1}}}" if answers.max_calls > 1 else ""
    )
    start_rule, lexemes = ("calls", []) if answers.final is None else _build_free_text_rules(form, limits.max_string)
    header_lines = ["%llguidance {}", f"start: {start_rule}"]
    header_lines.append(f"calls: {quote_lark(layout.before)} call{further_calls} {quote_lark(layout.after)}")
    header_lines.append(f"call: {call}")
    return "\n".join([*header_lines, *call_lines, *lexemes])


def _build_free_text_rules(form: FormatGrammar, max_length: int) -> tuple[str, list[str]]:
    """Return the start rule of an answer that may be free text, and the definitions of the text's lexemes."""
    barred_character = escape_for_class(form.barred)
    text = f"TEXT: /[^{barred_character}]{{1,{max_length}}}/"
    if form.text_end is None:
        return "calls | TEXT", [text]
    prose = f"PROSE: /(`{{0,2}}[^`{barred_character}]){{{int(not form.text_end)},{max_length}}}{form.text_end}/"
    return "PROSE? calls | TEXT", [text, prose]


def quote_lark(text: str) -> str:
    """Return a text as a literal of Lark."""
    return write_json(text)


def _check_answers(answers: AllowedAnswers, form: FormatGrammar) -> None:
    if answers.max_calls > 1 and not form.is_repeatable:
        raise PlanError("calls of this format differ by their place; a grammar holds one call per answer only")
    if answers.final is not None and not form.barred:
        raise PlanError("nothing tells calls of this format from free text; a grammar needs a tool choice of required")
