"""Client of one installation: it launches runs there and reads their results."""

import math
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal

import httpx

from toolbench.client.documents import (
    JsonObject,
    RemoteCase,
    RemoteConversation,
    RemoteModel,
    RemotePage,
    RemotePlan,
    RemoteRun,
    RemoteRunDetail,
    RemoteRunSummary,
    RemoteSentence,
    RemoteSentMessage,
    RemoteTrial,
    RemoteTrialDetail,
    read_document,
)
from toolbench.client.errors import ToolbenchError, UnreachableError, is_temporary
from toolbench.client.transport import Transport, read_json

POLL_SECONDS = 2.0
MAX_FAILING_SECONDS = 120.0  # how long polls in a row may fail before the error is raised
PAGE_SIZE = 200


class ToolbenchClient:
    """Client of one installation. Use it in a `with` block, or call `close`.

    Every method that sends a request may raise ToolbenchError, if the API refused the request; UnreachableError, if the
    API did not answer; and ValueError, if the answer does not have the form that this version of the client needs.
    """

    def __init__(self, base_url: str, token: str, *, http: httpx.Client | None = None) -> None:
        """Create the client; it sends no request yet.

        Args:
            base_url: address of the installation, such as https://toolbench.example.org.
            token: API token; white space around it is ignored.
            http: HTTP client to use; it gets the address and the token. None to create one.

        Raises:
            UnreachableError: `base_url` is not a URL, or `token` cannot be a token.
        """
        self.transport = Transport.connect(base_url, token, http)

    def __enter__(self) -> "ToolbenchClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the HTTP client with its connections, even if it was passed to the constructor."""
        self.transport.http.close()

    def request(self, method: str, path: str, /, body: Any = None, **params: Any) -> Any:
        """Send a request to an operation that answers with JSON or with an empty body.

        GET uses the cache of unchanged answers. For an operation that answers with a file, such as a report, call
        `transport.send`, which returns the response.

        Args:
            method: HTTP method.
            path: path below `/api/v1`, such as `/runs`.
            body: JSON value of the body; None for no body. GET sends no body.
            params: parameters of the query string; a list repeats its parameter, and None values are left out.

        Returns:
            The JSON value of the answer; None for an empty answer.
        """
        if method == "GET":
            return self.transport.get(path, params)
        response = self.transport.send(method, path, params=params, body=body)
        return read_json(response)

    def list_models(self, search: str = "") -> list[RemoteModel]:
        """Return the models whose name or canonical name contains `search`, in upper or lower case."""
        return [read_document(RemoteModel, row) for row in self.transport.get("/models", {"q": search})]

    def plan(self, **plan: Any) -> RemotePlan:
        """Plan a run without launching it; the arguments are the members of the body of POST /runs/plan."""
        return read_document(RemotePlan, self.request("POST", "/runs/plan", plan))

    def launch(self, *, idempotency_key: str = "", agreed: int = 0, **plan: Any) -> RemoteRun:
        """Launch a run.

        Args:
            idempotency_key: name of this launch, so that a repeated request returns the same run; empty for none.
            agreed: number of paid requests that may be sent; `ConflictError.agreed` is the number to confirm.
            plan: the members of the body of POST /runs/plan.
        """
        return read_document(RemoteRun, self._post_with_key("/runs", plan | {"agreed": agreed}, idempotency_key))

    def iter_runs(
        self, kind: Literal["own", "simulated", "imported", "all"] = "all", label: str = ""
    ) -> Iterator[RemoteRunSummary]:
        """Yield runs, newest first. Each page of the list is requested when it is needed.

        Args:
            kind: `own` for runs that are neither simulated nor imported.
            label: label of the runs; "" for all.
        """
        for row in self._iter_rows("/runs", {"kind": kind, "label": label}):
            yield read_document(RemoteRunSummary, row)

    def get_run(self, run_id: int) -> RemoteRunDetail:
        """Return a run with all its configurations and cells. Each page of configurations is requested."""
        return self._read_run(self.transport.get(f"/runs/{run_id}"))

    def wait_for_run(self, run_id: int, *, seconds: float | None = None) -> RemoteRunDetail:
        """Wait until a run has ended and its figures are final, or until it is paused; return the run.

        A request that gets no answer, status 429 or a status of 500 or more is sent again for `MAX_FAILING_SECONDS`,
        with growing pauses, so that a restart of the server does not end the wait. If this client has not had any
        answer yet, the first error is raised, since the address may be wrong.

        Args:
            run_id: id of the run.
            seconds: maximum time to wait; None for no limit.

        Raises:
            TimeoutError: the run has not ended after `seconds`. If the last request failed, its error is raised.
        """
        deadline = math.inf if seconds is None else self.transport.clock() + seconds
        failed_polls, failing_since = 0, 0.0
        while True:
            try:
                started = self.transport.clock()
                first_page = self.transport.get(f"/runs/{run_id}")
                detail = read_document(RemoteRunDetail, first_page)
                if (detail.run.has_ended and not detail.live) or detail.run.state == "paused":
                    return self._read_run(first_page)
                failed_polls = 0
            except (ToolbenchError, UnreachableError) as error:
                failing_since = failing_since if failed_polls else started
                failed_polls += 1
                may_be_repeated = self.transport.has_answered and is_temporary(error)
                if not may_be_repeated or self.transport.clock() > min(deadline, failing_since + MAX_FAILING_SECONDS):
                    raise
            if not failed_polls and self.transport.clock() > deadline:
                raise TimeoutError(f"Run {run_id} is still running after {seconds:g} s.")
            self.transport.wait(POLL_SECONDS * max(1, failed_polls))

    def pause(self, run_id: int) -> RemoteRun:
        """Pause a run."""
        return read_document(RemoteRun, self.request("POST", f"/runs/{run_id}/pause"))

    def resume(self, run_id: int) -> RemoteRun:
        """Resume a paused run."""
        return read_document(RemoteRun, self.request("POST", f"/runs/{run_id}/resume"))

    def cancel(self, run_id: int) -> RemoteRun:
        """Cancel a run."""
        return read_document(RemoteRun, self.request("POST", f"/runs/{run_id}/cancel"))

    def repeat(
        self, run_id: int, *, kind: Literal["same", "aa"] = "same", agreed: int = 0, idempotency_key: str = ""
    ) -> RemoteRun:
        """Launch a run again with its frozen settings, and return the new run.

        Args:
            run_id: id of the run.
            kind: `same` for the same seeds, `aa` for new sampling seeds.
            agreed: as for `launch`.
            idempotency_key: as for `launch`.
        """
        body = {"kind": kind, "agreed": agreed}
        return read_document(RemoteRun, self._post_with_key(f"/runs/{run_id}/repeat", body, idempotency_key))

    def add_trials(self, run_id: int, cell_id: int, count: int, *, agreed: int = 0, idempotency_key: str = "") -> str:
        """Add trials to a cell of a run, and return the sentence of the answer.

        Args:
            run_id: id of the run.
            cell_id: id of the cell.
            count: number of trials to add.
            agreed: as for `launch`.
            idempotency_key: name of this request, so that a repeated request adds nothing; empty for none.
        """
        path, body = f"/runs/{run_id}/cells/{cell_id}/trials", {"count": count, "agreed": agreed}
        return read_document(RemoteSentence, self._post_with_key(path, body, idempotency_key)).sentence

    def iter_trials(self, **trial_filter: Any) -> Iterator[RemoteTrial]:
        """Yield the trials that match a filter; the arguments are the parameters of GET /trials.

        By default, `sort` is `order`: all matching trials are yielded, run by run, the newest run first, and within a
        run as planned. Any other `sort` yields only the newest 10,000 trials, unless `trial_filter` has ids of runs,
        cells or configurations.
        """
        for row in self._iter_rows("/trials", {"sort": "order"} | trial_filter):
            yield read_document(RemoteTrial, row)

    def get_trial(self, trial_id: int) -> RemoteTrialDetail:
        """Return a trial with the steps of its last execution, at most 400."""
        return read_document(RemoteTrialDetail, self.transport.get(f"/trials/{trial_id}"))

    def start_conversation(self, message: str, *, idempotency_key: str = "", **options: Any) -> RemoteSentMessage:
        """Start a conversation of the playground.

        Args:
            message: the user's message; empty to send the message of the trial with the id `from_trial` again.
            idempotency_key: name of this message, so that a repeated request sends nothing; empty for none.
            options: other members of the body of POST /conversations, such as `model`, `tools` and `trials`.
        """
        body = options | ({"message": message} if message else {})
        return read_document(RemoteSentMessage, self._post_with_key("/conversations", body, idempotency_key))

    def send_message(
        self, conversation: str, message: str, *, idempotency_key: str = "", **options: Any
    ) -> RemoteSentMessage:
        """Send the next message of a conversation.

        Args:
            conversation: slug of the conversation.
            message: the user's message.
            idempotency_key: as for `start_conversation`.
            options: other members of the body of POST /conversations/{slug}/messages, such as `trial`.
        """
        path, body = f"/conversations/{conversation}/messages", options | {"message": message}
        return read_document(RemoteSentMessage, self._post_with_key(path, body, idempotency_key))

    def get_conversation(self, conversation: str, trial_id: int | None = None) -> RemoteConversation:
        """Return a conversation with the history up to an answer.

        Args:
            conversation: slug of the conversation.
            trial_id: id of the trial that gave the answer; None for the newest answer.
        """
        path = f"/conversations/{conversation}"
        return read_document(RemoteConversation, self.transport.get(path, {"trial": trial_id}))

    def save_as_case(self, conversation: str, trial_id: int) -> RemoteCase:
        """Save an answer as a test case that expects its calls, and return the case."""
        path = f"/conversations/{conversation}/trials/{trial_id}/case"
        return read_document(RemoteCase, self.request("POST", path))

    def run_as_case(
        self, conversation: str, trial_id: int, *, trials: int = 20, agreed: int = 0, idempotency_key: str = ""
    ) -> RemoteRun:
        """Save an answer as a test case and run it.

        Args:
            conversation: slug of the conversation.
            trial_id: id of the trial that gave the answer.
            trials: number of trials of the run.
            agreed: as for `launch`.
            idempotency_key: as for `launch`.
        """
        path, body = f"/conversations/{conversation}/trials/{trial_id}/runs", {"trials": trials, "agreed": agreed}
        return read_document(RemoteRun, self._post_with_key(path, body, idempotency_key))

    def get_bytes(self, step_id: int, side: Literal["request", "response"]) -> bytes:
        """Return the stored bytes of the request or the response of a step, with secrets masked."""
        return self.transport.send("GET", f"/steps/{step_id}/{side}").content

    def get_matrix(self, **choice: Any) -> JsonObject:
        """Return the matrix; the arguments are the parameters of GET /matrix."""
        matrix: JsonObject = self.transport.get("/matrix", choice)
        return matrix

    def decide(self, **rule: Any) -> JsonObject:
        """Apply a decision rule; the arguments are the parameters of GET /decide."""
        decision: JsonObject = self.transport.get("/decide", rule)
        return decision

    def _read_run(self, first_page: Any) -> RemoteRunDetail:
        """Return a run with the configurations of all its pages.

        Args:
            first_page: JSON value of the first page.
        """
        detail = read_document(RemoteRunDetail, first_page)
        configs = list(detail.configs)
        for page in range(2, first_page.get("pages", 1) + 1):
            later_page = self.transport.get(f"/runs/{detail.run.id}", {"page": page})
            configs += read_document(RemoteRunDetail, later_page).configs
        return replace(detail, configs=configs)

    def _post_with_key(self, path: str, body: JsonObject, idempotency_key: str) -> Any:
        """Send a POST request, with the key unless it is empty, and return the JSON value of the answer."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return read_json(self.transport.send("POST", path, body=body, headers=headers))

    def _iter_rows(self, path: str, params: dict[str, Any]) -> Iterator[JsonObject]:
        """Yield the items of all pages of a list."""
        cursor: Any = None
        while True:
            answer = self.transport.get(path, params | {"limit": PAGE_SIZE, "cursor": cursor})
            page = read_document(RemotePage, answer)
            yield from page.items
            cursor = page.next
            if cursor is None:
                return
