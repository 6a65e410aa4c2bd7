"""A chat conversation in the order that Messages asks for: user and assistant in turns, the user first, and after every
calling assistant all its results in one user turn, before anything else that is said there."""

from toolbench.engine.messages import JsonObject, Message
from toolbench.engine.wires.anthropic.blocks import assistant_blocks, is_blank, result_block, text_block, user_blocks
from toolbench.engine.wires.anthropic.call_ids import CallIds
from toolbench.engine.wires.anthropic.changes import Changes
from toolbench.engine.wires.reading import structured_calls, text_of

OPENING = "Go on."  # said by the user where a conversation does not begin with one
SYSTEM = ("system", "developer")


def split_system(messages: list[Message]) -> tuple[str, list[Message]]:
    """The system texts at the beginning, joined by blank lines, and the rest."""
    count = next((place for place, one in enumerate(messages) if one.get("role") not in SYSTEM), len(messages))
    texts = [text_of(message) for message in messages[:count]]
    return "\n\n".join(text for text in texts if text.strip()), messages[count:]


def lay_out(messages: list[Message], changes: Changes) -> list[JsonObject]:
    """The messages without the leading system texts, as Messages takes them. Nothing given is changed."""
    layout = _Layout(changes)
    for message in messages:
        layout.take(message)
    return layout.finish()


class _Layout:
    """What was laid out so far, and what the user side has said since the last assistant's turn."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._ids = CallIds()
        self._turns: list[JsonObject] = []
        self._awaited: list[tuple[object, str]] = []  # (id in the chat, id that travels) of the last turn's calls
        self._results: dict[str, Message] = {}  # by the id that travels
        self._said: list[JsonObject] = []

    def take(self, message: Message) -> None:
        role = message.get("role")
        if role == "assistant":
            self._assistant(message)
        elif role == "tool":
            self._result(message)
        else:
            if role in SYSTEM:
                self._changes.note("midturn_system_folded", "$.messages[*]", message.get("content"))
            self._said += user_blocks(message.get("content"))

    def finish(self) -> list[JsonObject]:
        self._close_user_turn()
        if not self._turns or self._turns[0]["role"] != "user":
            self._changes.note("first_user_added", "$.messages[0]", None, OPENING)
            self._turns.insert(0, {"role": "user", "content": [text_block(OPENING)]})
        if self._turns[-1]["role"] == "assistant":
            self._turns[-1]["content"] = _without_trailing_space(self._turns[-1]["content"])
        return self._turns

    def _assistant(self, message: Message) -> None:
        ids = [call.get("id") for call in structured_calls(message)]
        travelling = self._ids.travelling(ids)
        blocks = assistant_blocks(message, travelling, self._changes)
        if not blocks:
            return
        self._close_user_turn()
        self._awaited = list(zip(ids, travelling, strict=True))
        for given, sent in self._awaited:
            if given != sent:
                self._changes.note("call_id_mapped", "$.messages[*].content[*].id", given, sent)
        if self._turns and self._turns[-1]["role"] == "assistant":
            self._turns[-1]["content"] = [*self._turns[-1]["content"], *blocks]
        else:
            self._turns.append({"role": "assistant", "content": blocks})

    def _result(self, message: Message) -> None:
        given = message.get("tool_call_id")
        waiting = (sent for known, sent in self._awaited if known == given and sent not in self._results)
        sent = next(waiting, None)
        if sent is not None:
            self._results[sent] = message
        elif blocks := user_blocks(message.get("content")):
            self._changes.note("orphan_result_as_text", "$.messages[*]", given)
            self._said += blocks

    def _close_user_turn(self) -> None:
        results = [result_block(sent, self._results.get(sent)) for _, sent in self._awaited]
        for given, sent in self._awaited:
            if sent not in self._results:
                self._changes.note("missing_result_added", "$.messages[*]", given)
        if results or self._said:
            self._turns.append({"role": "user", "content": [*results, *self._said]})
        self._awaited, self._results, self._said = [], {}, []


def _without_trailing_space(blocks: list[JsonObject]) -> list[JsonObject]:
    """A last assistant's text may not end in white space."""
    last = blocks[-1]
    if last.get("type") != "text":
        return blocks
    last = {**last, "text": str(last.get("text")).rstrip()}
    return blocks[:-1] if is_blank(last) and len(blocks) > 1 else [*blocks[:-1], last]
