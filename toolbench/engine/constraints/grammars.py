"""Grammars of complete answers, in GBNF and for llguidance."""

from toolbench.engine.constraints.allowed_answers import AllowedAnswers, build_answer_schema
from toolbench.engine.constraints.format_grammar import FormatGrammar, escape_for_class, find_format_grammar
from toolbench.engine.constraints.gbnf import GbnfGrammar
from toolbench.engine.constraints.gbnf_text import render_json_literal, render_literal, render_repeat
from toolbench.engine.constraints.schema_dedup import deduplicate_schema
from toolbench.engine.constraints.schema_support import GBNF_SUPPORT, LLGUIDANCE_SUPPORT, SchemaSupport, SizeLimits
from toolbench.engine.errors import PlanError
from toolbench.engine.strict_json import write_json
from toolbench.engine.types import JsonObject

# Keyword of llguidance that forbids white space between JSON tokens.
COMPACT_WHITESPACE: JsonObject = {"x-guidance": {"whitespace_flexible": False}}


def build_gbnf(answers: AllowedAnswers, limits: SizeLimits, text_format: str = "") -> str:
    """Return a grammar of the allowed answers in GBNF, for llama.cpp and engines that accept its grammars.

    Args:
        answers: the allowed answers, normalised for GBNF_SUPPORT.
        limits: maximum lengths of free text and of white space; those of strings and lists are in `answers`.
        text_format: name of the text format of the answer; "" for JSON.

    Raises:
        PlanError: the text format is unknown, or a grammar cannot enforce it for these answers.
    """
    grammar = GbnfGrammar(answers.definitions, limits)
    if text_format:
        return grammar.render(_build_format_root(grammar, answers, limits, find_format_grammar(text_format)))
    alternatives = []
    for name, arguments in answers.call_schemas:
        pairs = [("name", grammar.define("name", render_json_literal(name)), True)]
        alternatives.append(grammar.define_object([*pairs, ("arguments", grammar.define_value(arguments), True)]))
    if answers.max_calls > 1:
        call_list = grammar.define_list(grammar.define("call", " | ".join(alternatives)), 1, answers.max_calls)
        alternatives = [grammar.define_object([("calls", call_list, True)])]
    if answers.final_schema is not None:
        alternatives.append(grammar.define_object([("final", grammar.define_value(answers.final_schema), True)]))
    return grammar.render(" | ".join(alternatives))


def _build_format_root(
    grammar: GbnfGrammar, answers: AllowedAnswers, limits: SizeLimits, format_grammar: FormatGrammar
) -> str:
    """Return the body of the start rule for calls in a text format, with free text before or instead if allowed."""
    _check_answers(answers, format_grammar)
    calls = []
    for name, arguments in answers.call_schemas:
        text_before, text_after = format_grammar.split_around_arguments(name)
        calls.append(
            " ".join(
                (
                    render_literal(text_before),
                    grammar.define_value(arguments),
                    *([render_literal(text_after)] if text_after else []),
                )
            )
        )
    call = grammar.define("call", " | ".join(calls))
    further_call = (
        grammar.define("more", f"{render_literal(format_grammar.layout.between_calls)} {call}")
        if answers.max_calls > 1
        else ""
    )
    further_calls = f" {render_repeat(further_call, 0, answers.max_calls - 1, grammar.define)}" if further_call else ""
    layout = format_grammar.layout
    answer = f"{render_literal(layout.before_calls)} {call}{further_calls} {render_literal(layout.after_calls)}"
    if answers.final_schema is None:
        return answer
    max_length = _get_max_text_length(limits, GBNF_SUPPORT)
    barred_character = escape_for_class(format_grammar.barred_character)
    if format_grammar.text_end is not None:
        # Free text before calls must not contain ```, which begins a fence around calls. Free text without calls may.
        prose_part = grammar.define("prose", f'"`"{{0,2}} [^`{barred_character}]')
        prose = render_repeat(prose_part, int(not format_grammar.text_end), max_length, grammar.define)
        answer = f"{grammar.define('before', f'{prose} {format_grammar.text_end}'.strip())}? {answer}"
    text_character = grammar.define("text", f"[^{barred_character}]")
    return f"{answer} | {render_repeat(text_character, 1, max_length, grammar.define)}"


def build_llguidance(answers: AllowedAnswers, limits: SizeLimits, text_format: str = "") -> str:
    """Return a grammar of the allowed answers in llguidance's variant of Lark, without white space between JSON tokens.

    Arguments and exceptions are those of `build_gbnf`, but the answers must be normalised for LLGUIDANCE_SUPPORT.
    """
    if not text_format:
        schema = {**COMPACT_WHITESPACE, **deduplicate_schema(build_answer_schema(answers))}
        return f"%llguidance {{}}\nstart: %json {write_json(schema)}"
    format_grammar = find_format_grammar(text_format)
    _check_answers(answers, format_grammar)
    call_lines = []
    for index, (name, arguments) in enumerate(answers.call_schemas):
        text_before, text_after = format_grammar.split_around_arguments(name)
        schema = {**COMPACT_WHITESPACE, **arguments, **({"$defs": answers.definitions} if answers.definitions else {})}
        call_lines.append(f"call{index}: {quote_lark(text_before)} arguments{index} {quote_lark(text_after)}")
        call_lines.append(f"arguments{index}: %json {write_json(schema)}")
    call = " | ".join(f"call{index}" for index in range(len(answers.call_schemas)))
    layout = format_grammar.layout
    further_calls = (
        f" ({quote_lark(layout.between_calls)} call){{0,{answers.max_calls - 1}}}" if answers.max_calls > 1 else ""
    )
    start_rule, lexeme_lines = (
        ("calls", [])
        if answers.final_schema is None
        else _build_free_text_rules(format_grammar, _get_max_text_length(limits, LLGUIDANCE_SUPPORT))
    )
    header_lines = ["%llguidance {}", f"start: {start_rule}"]
    header_lines.append(
        f"calls: {quote_lark(layout.before_calls)} call{further_calls} {quote_lark(layout.after_calls)}"
    )
    header_lines.append(f"call: {call}")
    return "\n".join([*header_lines, *call_lines, *lexeme_lines])


def _get_max_text_length(limits: SizeLimits, support: SchemaSupport) -> int:
    """Return the maximum length of free text: the same as that of a string whose schema sets none."""
    return min(limits.max_string_length, support.max_length or limits.max_string_length)


def _build_free_text_rules(format_grammar: FormatGrammar, max_length: int) -> tuple[str, list[str]]:
    """Return the body of the start rule for calls or free text, and the lines that define TEXT and PROSE."""
    barred_character = escape_for_class(format_grammar.barred_character)
    text = f"TEXT: /[^{barred_character}]{{1,{max_length}}}/"
    if format_grammar.text_end is None:
        return "calls | TEXT", [text]
    text_end = format_grammar.text_end
    prose = f"PROSE: /(`{{0,2}}[^`{barred_character}]){{{int(not text_end)},{max_length}}}{text_end}/"
    return "PROSE? calls | TEXT", [text, prose]


def quote_lark(text: str) -> str:
    """Return a text as a literal of Lark."""
    return write_json(text)


def _check_answers(answers: AllowedAnswers, format_grammar: FormatGrammar) -> None:
    if answers.max_calls > 1 and not format_grammar.is_repeatable:
        raise PlanError(
            "the text of a call in this format depends on its position, so a grammar can allow only one call"
        )
    if answers.final_schema is not None and not format_grammar.barred_character:
        raise PlanError("a grammar cannot tell calls in this text format from free text: set tool_choice to required")
