"""Matcher of texts against a grammar, without a model: llguidance runs it with one token per byte."""

import json
from collections.abc import Iterable
from typing import Any

from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance.gbnf_to_lark import ASTNode, GrammarParser, LiteralNode, RuleNode, SequenceNode, resolve

BYTE_TOKENIZER = LLTokenizer("byte")
PARSER_LIMITS = LLParserLimits(max_items_in_row=20_000, step_max_items=500_000)


class GrammarMatcher:
    """Matcher of a grammar in GBNF or in the syntax of llguidance."""

    def __init__(self, grammar: str) -> None:
        lark = grammar if grammar.startswith("%llguidance") else split_literals(grammar)
        self._matcher = LLMatcher(BYTE_TOKENIZER, LLMatcher.grammar_from_lark(lark), log_level=0, limits=PARSER_LIMITS)
        assert not self._matcher.is_error(), self._matcher.get_error()

    def accepts(self, text: str) -> bool:
        """Return whether a text is a complete answer."""
        self._matcher.reset()
        tokens = list(text.encode())
        return self._matcher.try_consume_tokens(tokens) == len(tokens) and self._matcher.is_accepting()

    def accepts_call(self, name: str, arguments: Any) -> bool:
        """Return whether a call is a complete answer."""
        return self.accepts(render_call(name, arguments))


def render_call(name: str, arguments: Any) -> str:
    """Return a call as JSON without white space."""
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False, separators=(",", ":"))


def split_literals(grammar: str) -> str:
    """Return a GBNF grammar in the syntax of Lark, with literals split into single characters.

    The lexer of Lark prefers the longest token; llama.cpp reads single characters.
    """
    rules = GrammarParser().parse(grammar)
    resolve(rules)
    lines = ["%llguidance {}"]
    for rule in rules.values():
        rule.name = rule.name.lower()
        _split_node(rule)
    lines += [str(rule) for rule in sorted(rules.values(), key=lambda rule: rule.order)]
    return "\n\n".join(lines)


def _split_node(node: ASTNode) -> None:
    for name, value in vars(node).items():
        if isinstance(value, LiteralNode):
            setattr(node, name, _split_literal(value))
        elif isinstance(value, list):
            setattr(node, name, [_split_literal(part) if isinstance(part, LiteralNode) else part for part in value])
        if isinstance(value, ASTNode) and not isinstance(value, RuleNode | LiteralNode):
            _split_node(value)
        elif isinstance(value, list):
            for part in value:
                _split_node(part)


def _split_literal(literal: LiteralNode) -> ASTNode:
    parts = list(_iter_characters(literal.value))
    return SequenceNode([LiteralNode(part) for part in parts]) if len(parts) > 1 else literal


def _iter_characters(text: str) -> Iterable[str]:
    start = 0
    while start < len(text):
        size = 2 if text[start] == "\\" else 1
        yield text[start : start + size]
        start += size
