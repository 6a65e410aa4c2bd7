"""Runs a grammar of ours against strings with no model: llguidance reads it, one character a token."""

import json
from collections.abc import Iterable
from typing import Any

from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance.gbnf_to_lark import ASTNode, GrammarParser, LiteralNode, RuleNode, SequenceNode, resolve

BYTES = LLTokenizer("byte")
ROOM = LLParserLimits(max_items_in_row=20_000, step_max_items=500_000)


class Oracle:
    """Says which texts a grammar takes, in GBNF or in llguidance's own words."""

    def __init__(self, grammar: str) -> None:
        lark = grammar if grammar.startswith("%llguidance") else in_characters(grammar)
        self._matcher = LLMatcher(BYTES, LLMatcher.grammar_from_lark(lark), log_level=0, limits=ROOM)
        assert not self._matcher.is_error(), self._matcher.get_error()

    def takes(self, text: str) -> bool:
        """Whether this is a whole answer."""
        self._matcher.reset()
        sent = list(text.encode())
        taken = self._matcher.try_consume_tokens(sent)
        return taken == len(sent) and self._matcher.is_accepting()

    def takes_call(self, name: str, arguments: Any) -> bool:
        return self.takes(call_text(name, arguments))


def call_text(name: str, arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False, separators=(",", ":"))


def in_characters(grammar: str) -> str:
    """GBNF as Lark without tokens of more than one character: a lexer that takes the longest would see words where
    llama.cpp sees characters."""
    rules = GrammarParser().parse(grammar)
    resolve(rules)
    lines = ["%llguidance {}"]
    for rule in rules.values():
        rule.name = rule.name.lower()
        _split(rule)
    lines += [str(rule) for rule in sorted(rules.values(), key=lambda rule: rule.order)]
    return "\n\n".join(lines)


def _split(node: ASTNode) -> None:
    for name, value in vars(node).items():
        if isinstance(value, LiteralNode):
            setattr(node, name, _characters(value))
        elif isinstance(value, list):
            setattr(node, name, [_characters(part) if isinstance(part, LiteralNode) else part for part in value])
        if isinstance(value, ASTNode) and not isinstance(value, RuleNode | LiteralNode):
            _split(value)
        elif isinstance(value, list):
            for part in value:
                _split(part)


def _characters(literal: LiteralNode) -> ASTNode:
    parts = list(_pieces(literal.value))
    return SequenceNode([LiteralNode(part) for part in parts]) if len(parts) > 1 else literal


def _pieces(text: str) -> Iterable[str]:
    at = 0
    while at < len(text):
        size = 2 if text[at] == "\\" else 1
        yield text[at : at + size]
        at += size
