"""The simulated workspace of the state scenarios, and the envelope of a refused call."""

import copy
from collections.abc import Mapping, Sequence

from toolbench.engine.errors import ToolArgumentError
from toolbench.engine.types import JsonObject
from toolbench.evals.json_patch import PatchError, apply_patch
from toolbench.evals.json_pointers import find_pointer_value

IMPLICIT_WORKSPACE_IDS = ("", "workspace_id")  # a blank id or the parameter's own name means the only workspace


class StateWorkspace:
    """The workspace of a state scenario: facts, a versioned draft, locks and interface state.

    Each execution of a trial has its own. The tools `state_get` and `state_patch` read and change it.

    Args:
        workspace_id: The id that calls may pass.
        writable: The only key under /draft/ that a model may set.
        draft: The initial draft; empty if None.
        answers: Fixed answers of further tools, which the task does not need, by the tool's name.
    """

    def __init__(
        self, workspace_id: str, *, writable: str, draft: JsonObject | None = None, answers: JsonObject | None = None
    ) -> None:
        self.workspace_id = workspace_id
        self.draft: JsonObject = dict(draft or {})
        self._writable_pointer = f"/draft/{writable}"
        self._answers = dict(answers or {})
        self._facts_version = 0
        self._draft_version = 0

    def call(self, name: str, arguments: JsonObject, call_id: str) -> object:
        """Run a tool and return its answer.

        An unknown tool or workspace id gives the envelope of a failed call. A missing id or one of
        IMPLICIT_WORKSPACE_IDS stands for this workspace.

        Raises:
            ToolArgumentError: The tool refuses the arguments.
        """
        if name in self._answers:
            return copy.deepcopy(self._answers[name])
        if name not in ("state_get", "state_patch"):
            return build_refusal(name, "TOOL_NOT_IMPLEMENTED", f"{name} is not implemented")
        given_id = arguments.get("workspace_id")
        if not _is_implicit(given_id) and given_id != self.workspace_id:
            return build_refusal(name, "WORKSPACE_NOT_FOUND", f"there is no workspace {given_id}")
        if name == "state_get":
            return self.read(_normalise_pointers(arguments.get("select")))
        return self._check_and_patch(arguments.get("ops"))

    def snapshot(self) -> JsonObject:
        """Return a copy of the whole state, with the version tags `facts:N` and `draft:N`."""
        return {
            "facts": {},
            "draft": copy.deepcopy(self.draft),
            "locks": {"paths": []},
            "ui_state": {},
            "versions": {"facts_etag": f"facts:{self._facts_version}", "draft_etag": f"draft:{self._draft_version}"},
        }

    def read(self, select: Sequence[str] = ()) -> JsonObject:
        """Return the value at each JSON Pointer (None if there is none); without pointers, the whole snapshot."""
        snapshot = self.snapshot()
        return {pointer: find_pointer_value(snapshot, pointer) for pointer in select} if select else snapshot

    def patch(self, operations: Sequence[JsonObject]) -> JsonObject:
        """Apply the operations, whose paths must begin with /draft/; if one cannot be applied, apply none.

        Returns:
            `draft_etag`, the new version tag of the draft, and `applied`, the number of operations.

        Raises:
            ToolArgumentError: An operation cannot be applied.
        """
        try:
            changed = apply_patch({"draft": self.draft}, operations, root="/draft/")
        except PatchError as error:
            raise ToolArgumentError(str(error)) from error
        self.draft = changed["draft"]
        self._draft_version += bool(operations)
        return {"draft_etag": f"draft:{self._draft_version}", "applied": len(operations)}

    def _check_and_patch(self, operations: object) -> JsonObject:
        if not isinstance(operations, list) or not operations:
            raise ToolArgumentError("ops must be a non-empty array of objects")
        for operation in operations:
            if not isinstance(operation, Mapping):
                raise ToolArgumentError("every item of ops must be an object")
            if operation.get("op") != "set" or operation.get("path") != self._writable_pointer:
                raise ToolArgumentError(f'only {{"op":"set","path":"{self._writable_pointer}"}} is allowed here')
        return self.patch(operations)


def build_refusal(name: str, code: str, message: str) -> JsonObject:
    """Return the envelope of a failed call with one error."""
    return {"ok": False, "tool_name": name, "data": {}, "warnings": [], "errors": [{"code": code, "message": message}]}


def _is_implicit(given_id: object) -> bool:
    return given_id is None or (isinstance(given_id, str) and given_id.strip() in IMPLICIT_WORKSPACE_IDS)


def _normalise_pointers(select: object) -> tuple[str, ...]:
    """Return each JSON Pointer once, without quotes and backticks around it; `#/x` and `x` become `/x`.

    Blank items are left out.

    Raises:
        ToolArgumentError: `select` is neither None nor a list.
    """
    if select is None:
        return ()
    if not isinstance(select, list):
        raise ToolArgumentError("select must be an array of JSON Pointers")
    cleaned = (str(item).strip().strip("\"'`").removeprefix("#") for item in select)
    return tuple(dict.fromkeys(item if item.startswith("/") else f"/{item}" for item in cleaned if item))
