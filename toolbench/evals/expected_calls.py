"""The calls that a task expects, known before a trial starts, and the grading of the calls made."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from toolbench.engine.types import JsonObject
from toolbench.evals.call_matching import NO_MATCH, match_calls
from toolbench.evals.causes.required_calls import TaskNeeds
from toolbench.evals.causes.step_types import ExchangeAttempt, ToolRun, WireStep
from toolbench.evals.record_counts import is_valid_call


@dataclass(frozen=True, slots=True)
class ExpectedToolCall:
    """One call that a task expects.

    Attributes:
        is_match: Returns whether the arguments of a call of `tool` are right.
        list_wrong_paths: Returns the JSON paths at which the arguments of a call of `tool` are wrong or missing.
        arguments: Right arguments, for display; None if only checks decide which arguments are right. Values may be
            matchers of a user's test case.
    """

    tool: str
    is_match: Callable[[JsonObject], bool]
    list_wrong_paths: Callable[[JsonObject], tuple[str, ...]] = field(default=lambda arguments: ())
    arguments: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """The calls that an instance of a task expects.

    Attributes:
        needs_call: Whether the instance needs a call at all; None if the task does not determine it.
        calls: The expected calls whose arguments can be checked; empty if there are none.
        tools: The names of the tools that have to be called, one entry per call; if empty, those of `calls`.
        provoked_causes: Codes of causes that the task itself provokes, one entry per step with the cause.
        parallel_calls: The number of calls that must be in one message.
        needs_reply: Whether the final text is part of the task.
        is_ordered: Whether `calls` have to be made in this order.
        permits_others: Whether calls other than `calls` are permitted.
        accepts_refused: Whether the verdict accepts a call that breaks its tool's schema or whose tool was not offered.
    """

    needs_call: bool | None = None
    calls: tuple[ExpectedToolCall, ...] = ()
    tools: tuple[str, ...] = ()
    provoked_causes: tuple[str, ...] = ()
    parallel_calls: int = 1
    needs_reply: bool = False
    is_ordered: bool = False
    permits_others: bool = False
    accepts_refused: bool = False

    @property
    def needs(self) -> TaskNeeds:
        """Return the requirements from which the cause of a failed trial is derived."""
        tools = self.tools or tuple(call.tool for call in self.calls)
        are_tools_known = bool(tools) or self.needs_call is False
        return TaskNeeds(
            tools if are_tools_known else None, self.provoked_causes, self.parallel_calls, self.needs_reply
        )


@dataclass(frozen=True, slots=True)
class CallGrades:
    """The grades of one trial's calls.

    Attributes:
        call_expected: Whether a call was needed; None if the task does not determine it or no request offered a tool.
        graded: The number of valid calls that were compared with an expected call.
        right: The number of those that have the right arguments.
        wrong_paths: The JSON paths at which the others differ from the expected call, sorted, each once.
        needs: The requirements that the cause of a failed trial is derived from.
    """

    call_expected: bool | None = None
    graded: int = 0
    right: int = 0
    wrong_paths: tuple[str, ...] = ()
    needs: TaskNeeds = field(default_factory=TaskNeeds)


def grade_calls(steps: Sequence[WireStep], expected: ExpectedCalls) -> CallGrades:
    """Return the grades of the calls in `steps`, the steps of one execution in order.

    Only calls that were valid without a repair are graded. They are matched with the expected calls so that as many as
    possible are right. A valid call without a match counts as wrong. It is compared with an expected call of its tool:
    the one from which it differs at the fewest paths. Expected calls that an earlier call matches are left out. If
    other calls are permitted, those that a later call matches are left out, too. A call is not graded if there is no
    expected call left to compare it with.
    """
    are_tools_offered = any(isinstance(step, ExchangeAttempt) and step.tools_sent for step in steps)
    made_calls = list(_iter_valid_calls(steps))
    costs = [[0.0 if _is_match(call, *made_call) else NO_MATCH for made_call in made_calls] for call in expected.calls]
    expected_by_made = {made_index: index for index, made_index in match_calls(costs).items()}
    taken = set(expected_by_made.values()) if expected.permits_others else set()
    wrong_count = 0
    wrong_paths: set[str] = set()
    for made_index, (tool, arguments) in enumerate(made_calls):
        if made_index in expected_by_made:
            taken.add(expected_by_made[made_index])
            continue
        remaining = [call for index, call in enumerate(expected.calls) if call.tool == tool and index not in taken]
        if remaining:
            wrong_count += 1
            nearest_paths: tuple[str, ...] = min((call.list_wrong_paths(arguments) for call in remaining), key=len)
            wrong_paths.update(nearest_paths)
    needs_call = expected.needs_call if are_tools_offered else None
    graded = len(expected_by_made) + wrong_count
    return CallGrades(needs_call, graded, len(expected_by_made), tuple(sorted(wrong_paths)), expected.needs)


def _is_match(expected: ExpectedToolCall, tool: str, arguments: JsonObject) -> bool:
    return expected.tool == tool and expected.is_match(arguments)


def _iter_valid_calls(steps: Sequence[WireStep]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the tool and the arguments of every call that was valid without a repair."""
    repaired: frozenset[int] = frozenset()  # indices of the repaired calls of the current answer
    call_index = 0
    for step in steps:
        if isinstance(step, ExchangeAttempt):
            errors = step.answer.parse_errors if step.answer else ()
            repaired = frozenset(error.call for error in errors if error.is_repaired and error.call is not None)
            call_index = 0
        elif isinstance(step, ToolRun):
            if call_index not in repaired and is_valid_call(step.result):
                yield step.tool, step.result.arguments or {}
            call_index += 1
