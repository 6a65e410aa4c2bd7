"""BFCL's multi-turn Python cases, read from its wheel without importing it.

A case has several messages of one user, and classes whose state the calls change.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.cases import build_tool, find_data_folder, iter_json_lines, iter_rows
from toolbench.evals.bfcl.golden_answers import BfclCall
from toolbench.evals.bfcl.multi_turn.environment import MODULE_BY_CLASS
from toolbench.evals.data_files import freeze_row

MULTI_TURN_CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
_PROMPTS_FILE = "constants/default_prompts.py"
_MORE_FUNCTIONS_CONSTANT = "DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC"


@dataclass(frozen=True, slots=True)
class MultiTurnCase:
    """One conversation.

    Attributes:
        messages: The user's messages, in order.
        functions: All functions of the classes, as BFCL writes them.
        later: The names of functions that are offered only from a later message on, by the index of that message as
            text.
        classes: The names of the classes whose methods are the functions.
        config: The initial state of each class.
        answers: BFCL's calls for each message, as Python code.
    """

    id: str
    category: str
    messages: tuple[str, ...]
    functions: tuple[JsonObject, ...]
    later: JsonObject
    classes: tuple[str, ...]
    config: JsonObject
    answers: tuple[tuple[str, ...], ...]

    @classmethod
    def from_json(cls, document: JsonObject) -> "MultiTurnCase":
        """Return the case from the result of `dataclasses.asdict`, in which tuples may have become lists.

        Raises:
            ValueError: BFCL has no class of one of the names.
        """
        if unknown_names := set(document["classes"]) - MODULE_BY_CLASS.keys():
            raise ValueError(f"BFCL has no class {', '.join(sorted(unknown_names))}")
        answers = tuple(tuple(turn) for turn in document["answers"])
        return cls(**freeze_row({**document, "answers": answers}))

    @property
    def is_long(self) -> bool:
        """Return whether the case is of long context: the initial state has much irrelevant content."""
        return "long_context" in self.category

    @property
    def tools(self) -> tuple[JsonObject, ...]:
        """Return the tools that are offered with the first message, in OpenAI's format."""
        later_names = {name for names in self.later.values() for name in names}
        return tuple(build_tool(function) for function in self.functions if function["name"] not in later_names)

    def build_added_tools(self, message_index: int) -> tuple[JsonObject, ...]:
        """Return the tools that are offered only from this message on, in OpenAI's format."""
        names = self.later.get(str(message_index), ())
        return tuple(build_tool(function) for function in self.functions if function["name"] in names)


def iter_multi_turn_cases(categories: Sequence[str] = MULTI_TURN_CATEGORIES) -> Iterator[MultiTurnCase]:
    """Yield all cases of the categories, category by category, in BFCL's order.

    Raises:
        NotInstalledError: BFCL is not installed.
    """
    for category, row, answers in iter_rows(categories):
        yield _build_case(category, row, answers)


def parse_golden_turns(case: MultiTurnCase) -> tuple[tuple[BfclCall, ...], ...]:
    """Return BFCL's calls for each message; positional arguments get the names of the parameters.

    Raises:
        SyntaxError: An answer is not a Python expression.
        KeyError: An answer calls a function that the case does not have.
        ValueError: An answer is not one call by name with literals.
    """
    parameter_names = {function["name"]: list(function["parameters"]["properties"]) for function in case.functions}
    return tuple(tuple(_parse_call(text, parameter_names) for text in turn) for turn in case.answers)


def _build_case(category: str, row: JsonObject, answers: Sequence[Sequence[str]]) -> MultiTurnCase:
    """Return the case; a message without text, which only adds functions, gets BFCL's sentence about them."""
    return MultiTurnCase(
        id=row["id"],
        category=category,
        messages=tuple(turn[0]["content"] if turn else _read_more_functions_text() for turn in row["question"]),
        functions=tuple(function for name in row["involved_classes"] for function in _read_functions(name)),
        later=row.get("missed_function", {}),
        classes=tuple(row["involved_classes"]),
        config=row["initial_config"],
        answers=tuple(tuple(turn) for turn in answers),
    )


def _parse_call(text: str, parameter_names: Mapping[str, Sequence[str]]) -> BfclCall:
    """Return the name and the arguments of a call in Python.

    Args:
        text: The call, such as `cd(folder='docs')`.
        parameter_names: For each function, the names of its parameters, in order.

    Raises:
        SyntaxError: The text is not a Python expression.
        KeyError: `parameter_names` does not have the function.
        ValueError: The text is not one call by name with literals.
    """
    call = ast.parse(text.strip(), mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"{text} is not a call by name")
    positional = zip(parameter_names[call.func.id], call.args, strict=False)
    arguments = [*positional, *((str(keyword.arg), keyword.value) for keyword in call.keywords)]
    return call.func.id, {name: ast.literal_eval(value) for name, value in arguments}


@cache
def _read_functions(class_name: str) -> tuple[JsonObject, ...]:
    return tuple(iter_json_lines(find_data_folder() / "multi_turn_func_doc" / f"{MODULE_BY_CLASS[class_name]}.json"))


@cache
def _read_more_functions_text() -> str:
    """Return BFCL's sentence for a message that only adds functions, parsed from the wheel's source."""
    tree = ast.parse(Path(find_data_folder().parent / _PROMPTS_FILE).read_text(encoding="utf-8"))
    values = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    return str(ast.literal_eval(values[_MORE_FUNCTIONS_CONSTANT]))
