"""A whole conversation as one prompt, written with a family's own turn tokens."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from toolbench.engine.errors import PlanError
from toolbench.engine.formats.framing import Frame, Place, Turns
from toolbench.engine.formats.registry import format_named, names
from toolbench.engine.formats.rendering import render, render_results, render_tools
from toolbench.engine.formats.turns import TURNS
from toolbench.engine.formats.values import TextCall, Tool


@dataclass(frozen=True, slots=True)
class Said:
    """What one side said. An assistant may have reasoned and called; a result is that of its one call."""

    by: Literal["system", "user", "assistant", "result"]
    text: str
    reasoning: str = ""
    calls: tuple[TextCall, ...] = ()


def turns_of(format: str) -> Turns:
    """How a format writes turns. Raises PlanError for a format without any that we know of, or for no format."""
    if format_named(format).name not in TURNS:
        raise PlanError(
            f"The turn tokens of the format {format!r} are not known, so no prompt can be written in it. "
            f"Choose another; they are known of all but {', '.join(name for name in names() if name not in TURNS)}."
        )
    return TURNS[format]


def render_conversation(said: Sequence[Said], *, format: str, tools: Iterable[Tool] = ()) -> str:
    """The prompt that asks for the assistant's next turn. It has no token that opens a sequence: servers add that.
    Raises PlanError for a format without known turn tokens."""
    turns = turns_of(format)
    told = render_tools(tools, format=format).strip("\n")
    placed = _placed(_with_ids(said, turns), told, turns)
    return turns.begins + "".join(_written(placed, format, turns, reminded=bool(told)))


def _with_ids(said: Sequence[Said], turns: Turns) -> list[Said]:
    """Calls and their results with ids that the family can write, counted over the whole conversation. Of calls that
    share an id, the first result is the first one's."""
    if turns.ids is None:
        return list(said)
    written: list[str] = []
    waiting: dict[tuple[str, str], list[str]] = {}
    named: list[Said] = []
    for one in said:
        if one.by == "assistant":
            made = _new_ids(one.calls, turns.ids, written)
            waiting |= _by_call(one.calls, made)
        else:
            made = [_answered(call, waiting) for call in one.calls]
        calls = tuple(replace(call, id=id) for call, id in zip(one.calls, made, strict=True))
        named.append(replace(one, calls=calls) if calls != one.calls else one)
    return named


def _new_ids(calls: Sequence[TextCall], ids: Callable[[TextCall, int], str], written: list[str]) -> list[str]:
    """One id for each call, which `written` then has too; one that it has already gives way to one of the place."""
    before = len(written)
    for call in calls:
        made = ids(call, len(written))
        written.append(ids(replace(call, id=""), len(written)) if made in written else made)
    return written[before:]


def _by_call(calls: Sequence[TextCall], made: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for call, id in zip(calls, made, strict=True):
        found.setdefault((call.id, call.name), []).append(id)
    return found


def _answered(call: TextCall, waiting: dict[tuple[str, str], list[str]]) -> str:
    made = waiting.get((call.id, call.name), [call.id])
    return made.pop(0) if len(made) > 1 else made[0]


def _folded(said: Sequence[Said], turns: Turns) -> list[Said]:
    """System texts in front are one; where a family has no system turn, each goes in front of the next user's."""
    folded: list[Said] = []
    waiting: list[str] = []
    for one in said:
        first = one.by == "system" and (turns.system is None or not folded or folded[-1].by == "system")
        if first and turns.system is None:
            waiting.append(one.text)
        elif first and folded:
            folded[-1] = replace(folded[-1], text=f"{folded[-1].text}\n\n{one.text}")
        elif one.by == "user" and waiting:
            folded.append(replace(one, text="\n\n".join([*waiting, one.text])))
            waiting = []
        else:
            folded.append(one)
    return [*folded, *([Said("user", "\n\n".join(waiting))] if waiting else [])]


@dataclass(frozen=True, slots=True)
class _Raw:
    """Text that goes into the prompt as it is."""

    text: str
    by: str = "raw"


def _placed(said: list[Said], told: str, turns: Turns) -> list[Said | _Raw]:
    """What was said, in turns the family has, and among it the tools."""
    if told and turns.tools is Place.USER:
        return [*_folded(_told_to_user(said, told), turns)]
    return _with_tools(_folded(said, turns), told, turns)


def _told_to_user(said: list[Said], told: str) -> list[Said]:
    at = next((place for place, one in enumerate(said) if one.by == "user"), len(said))
    text = f"{told}\n\n{said[at].text}" if at < len(said) else told
    return [*said[:at], Said("user", text), *said[at + 1 :]]


def _with_tools(said: list[Said], told: str, turns: Turns) -> list[Said | _Raw]:
    if not told:
        return list(said)
    users = [place for place, one in enumerate(said) if one.by == "user"]
    headed = bool(said) and said[0].by == "system"
    raw = _Raw(turns.tools_turn[0] + told + turns.tools_turn[1])
    match turns.tools:
        case Place.SYSTEM | Place.SYSTEM_HEAD:
            texts = [*([said[0].text] if headed else []), told]
            ordered = texts if turns.tools is Place.SYSTEM else texts[::-1]
            return [Said("system", "\n\n".join(ordered)), *said[1 if headed else 0 :]]
        case Place.BEFORE_LAST_USER:
            at = users[-1] if users else 0
            return [*said[:at], raw, *said[at:]]
        case Place.BEFORE_SYSTEM:
            return [raw, *said]
    return [*said[:headed], raw, *said[headed:]]


def _written(placed: list[Said | _Raw], format: str, turns: Turns, *, reminded: bool) -> Iterator[str]:
    after_results = False
    for by, group in groupby(placed, key=lambda one: one.by):
        together = [one for one in group if isinstance(one, Said)]
        if by == "result":
            pairs = [(call, one.text) for one in together for call in one.calls]
            yield from _results(pairs, format, turns)
        elif by == "raw":
            yield "".join(one.text for one in placed if isinstance(one, _Raw))
        else:
            for one in together:
                yield _turn(one, format, turns, resumed=after_results)
        after_results = by == "result"
    yield (turns.reminds if reminded else "") + _beginning(turns, resumed=after_results, asked=True)


def _results(pairs: Sequence[tuple[TextCall, str]], format: str, turns: Turns) -> Iterator[str]:
    for some in [[pair] for pair in pairs] if turns.apart else [pairs]:
        yield _framed(render_results(some, format=format), turns.results)


def _turn(one: Said, format: str, turns: Turns, *, resumed: bool) -> str:
    if one.by != "assistant":
        return _framed(one.text, turns.user if one.by == "user" or turns.system is None else turns.system)
    said = _framed(one.text, turns.preamble if one.calls else turns.text) if one.text else ""
    joint = turns.joint[0 if said else 1] if one.calls else ""
    written = _thought(one, format, turns, resumed=resumed) + said + joint + render(one.calls, format=format)
    ends = turns.assistant[1] if turns.pauses is None or not one.calls else turns.pauses
    over = ends and written.endswith(turns.stops)
    begins = _beginning(turns, resumed=resumed, thought=bool(one.reasoning))
    return begins + written + ("" if over else ends)


def _thought(one: Said, format: str, turns: Turns, *, resumed: bool) -> str:
    """What the assistant thought, or what stands in its place; nothing where the turn goes on after results."""
    if not one.reasoning:
        blank = turns.unthought if turns.unthought_calls is None or not one.calls else turns.unthought_calls
        return "" if resumed and turns.resumes is not None else blank
    if turns.thought is None:
        return render((), format=format, reasoning=one.reasoning)
    return _framed(one.reasoning, turns.thought)


def _beginning(turns: Turns, *, resumed: bool, thought: bool = False, asked: bool = False) -> str:
    """What the assistant's turn begins with, before what it thought."""
    if resumed and turns.resumes is not None and not (asked and turns.reopens):
        return "" if thought else turns.resumes
    return turns.asks if asked else turns.assistant[0]


def _framed(text: str, frame: Frame) -> str:
    return frame[0] + text + frame[1]
