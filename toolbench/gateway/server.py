"""HTTP server of the gateway: addresses, tokens, limits, fallbacks, streams and traces."""

import asyncio
import json
import logging
import secrets
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial

from aiohttp import web

from toolbench.gateway.client_body import LARGE_BYTES, parse_body, read_body, read_token
from toolbench.gateway.dialects.chat import ChatDialect
from toolbench.gateway.dialects.messages import MessagesDialect
from toolbench.gateway.dialects.responses import ResponsesDialect
from toolbench.gateway.directory import Directory
from toolbench.gateway.exchange import ClientExchange
from toolbench.gateway.request import MAX_BODY_BYTES, Dialect, GatewayAnswer, GatewayError, GatewayRequest
from toolbench.gateway.text_stream import TextListener, TextSender
from toolbench.gateway.trace_writer import TraceWriter
from toolbench.gateway.turn import TurnOutcome, TurnTarget, run_turn
from toolbench.lab.serving.served_aliases import ServedAlias
from toolbench.lab.serving.spending import compute_spending
from toolbench.lab.worker.database_thread import DatabaseThread
from toolbench.log_lines import log_ids
from toolbench.providers.http.client import HttpClient

logger = logging.getLogger(__name__)

DIALECTS: Mapping[str, Callable[[], Dialect]] = {
    "/v1/chat/completions": ChatDialect,
    "/v1/messages": MessagesDialect,
    "/v1/responses": ResponsesDialect,
}
EXPLAIN_HEADER = "x-toolbench-explain"  # with "1", the answer has the field `toolbench`
MAX_NAMED_CHANGES = 20  # in the header x-toolbench-changed
# Seconds that running requests have after the stop signal. The supervisor kills the process after 10 s; until then, the
# costs and traces of the requests that were cancelled have to be stored.
STOP_SECONDS = 4.0
_INTERNAL_ERROR = GatewayError(500, "gateway_failed", "The gateway itself failed. Send the request again later.")
_OTHER_TEXT_ERROR = GatewayError(
    502,
    "text_replaced",
    "The model's first answer was not valid, and the text of its second answer differs from the text that was already "
    "sent. Send the request again.",
)


class Gateway:
    """Application of one gateway process: its cache, HTTP client, trace writer and running requests."""

    def __init__(self) -> None:
        self._directory = Directory()
        self._writer_thread = DatabaseThread()
        self._writer = TraceWriter(self._writer_thread.run)
        self._client: HttpClient | None = None
        self._running: Counter[int] = Counter()  # number of running requests by provider id

    def build_app(self) -> web.Application:
        """Return the aiohttp application with its addresses."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.cleanup_ctx.append(self._manage_resources)
        for path in DIALECTS:
            app.router.add_post(path, self._answer)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/health", self._show_health)
        return app

    async def _manage_resources(self, app: web.Application) -> AsyncIterator[None]:
        async with HttpClient() as client:
            self._client = client
            self._writer.start()
            yield
            await self._writer.stop()
        await self._writer_thread.close()
        await self._directory.close()

    async def _show_health(self, request: web.Request) -> web.Response:
        health = {"status": "ok", "requests_running": self._running.total(), "traces_dropped": self._writer.lost_count}
        return web.json_response(health)

    async def _list_models(self, request: web.Request) -> web.Response:
        dialect = ChatDialect()
        try:
            await self._directory.check_token(read_token(request), request.remote or "")
            names = sorted(await self._directory.get_aliases())
        except GatewayError as error:
            return _build_error_response(dialect, error, "")
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "toolbench"} for name in names]
        return web.json_response({"object": "list", "data": models})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        exchange = ClientExchange(DIALECTS[request.path](), secrets.token_hex(12), time.perf_counter())
        with log_ids(request=exchange.id):  # log lines of tasks that are created here have the id, too
            try:
                return await self._answer_or_raise(request, exchange)
            except GatewayError as error:
                exchange.error = error
            except ConnectionError:  # the client disconnected
                raise
            except Exception:
                logger.exception("Request %s failed within the gateway", exchange.id)
                exchange.error = _INTERNAL_ERROR
            finally:
                self._put_trace(exchange)
        return _build_error_response(exchange.dialect, exchange.error, exchange.id)

    async def _answer_or_raise(self, request: web.Request, exchange: ClientExchange) -> web.StreamResponse:
        access = await self._directory.check_token(read_token(request), request.remote or "")
        exchange.token_name = access.name
        exchange.body = await read_body(request)
        exchange.request = parsed_request = await parse_body(exchange.dialect, exchange.body)
        aliases = await self._directory.get_aliases()
        targets = list(_list_targets(parsed_request.alias, aliases))
        with_changes = request.headers.get(EXPLAIN_HEADER) == "1"
        if parsed_request.stream:
            return await self._stream(request, exchange, targets, with_changes=with_changes)
        exchange.answer = answer = replace(await self._ask_in_order(exchange, parsed_request, targets), id=exchange.id)
        exchange.response += json.dumps(exchange.dialect.render(answer, with_changes=with_changes)).encode()
        headers = _build_headers(exchange, answer)
        return web.Response(body=bytes(exchange.response), content_type="application/json", headers=headers)

    async def _ask_in_order(
        self,
        exchange: ClientExchange,
        parsed_request: GatewayRequest,
        targets: list[ServedAlias],
        sender: TextSender | None = None,
    ) -> GatewayAnswer:
        """Send a request to one target after another until one answers.

        No further target is tried if the request itself was refused, or once text of an answer was sent.

        Args:
            exchange: receives each target and the outcome there.
            parsed_request: the request.
            targets: the alias and its fallbacks, in order.
            sender: receives the text of a stream; None without a stream.

        Raises:
            GatewayError: the error of the last target that was tried.
        """
        error = GatewayError(
            503, "unavailable", f"The alias {parsed_request.alias} cannot be served now.", retry_after=5
        )
        for target in targets:
            exchange.targets.append(target)
            try:
                outcome = await self._ask(exchange, parsed_request, target, sender)
            except GatewayError as refusal:
                error = refusal
                continue
            if outcome.answer is not None:
                return outcome.answer
            error = outcome.error or error
            if not outcome.is_upstream_fault or (sender is not None and sender.has_begun):
                break
        raise error

    async def _ask(
        self, exchange: ClientExchange, parsed_request: GatewayRequest, target: ServedAlias, sender: TextSender | None
    ) -> TurnOutcome:
        """Send a request to one target; add the outcome to the exchange and the cost to the sums of costs.

        Raises:
            GatewayError: the target cannot be served now, the budget of its provider is spent or cannot be read, or the
                provider has no free slot.
        """
        if target.endpoint is None or self._client is None:
            raise GatewayError(503, "unavailable", f"{target.name}: {target.refusal}", retry_after=30)
        if refusal := await self._directory.find_budget_refusal(target.provider_id):
            raise GatewayError(429, "budget_spent", f"{target.name}: {refusal}", retry_after=30)
        with self._occupy_slot(target):
            policy = target.resolve_policy(parsed_request.tool_choice)
            turn_target = TurnTarget(target.endpoint, policy, self._client)
            listener = TextListener(policy, parsed_request.tools, sender.send) if sender is not None else None
            outcome = TurnOutcome()
            exchange.outcomes.append(outcome)
            try:
                await run_turn(
                    parsed_request, turn_target, outcome, asyncio.sleep, listener.receive if listener else None
                )
            finally:  # a request whose client disconnects costs money, too
                spending = compute_spending(outcome.list_usages(), target.price)
                self._writer.add_spending(target.provider_id, spending)
        if sender is not None and listener is not None and outcome.answer is not None:
            rest = listener.find_rest(outcome.answer)
            if rest is None:
                outcome.answer, outcome.error = None, _OTHER_TEXT_ERROR
            else:
                sender.send(rest)
        return outcome

    @contextmanager
    def _occupy_slot(self, target: ServedAlias) -> Iterator[None]:
        """Occupy a slot of the target's provider within the context.

        Raises:
            GatewayError: no slot is free.
        """
        if self._running[target.provider_id] >= target.concurrency:
            raise GatewayError(
                429,
                "gateway_full",
                f"{target.concurrency} requests to this provider are under way; this is the limit. Try again.",
                retry_after=1,
            )
        self._running[target.provider_id] += 1
        try:
            yield
        finally:
            self._running[target.provider_id] -= 1

    async def _stream(
        self, request: web.Request, exchange: ClientExchange, targets: list[ServedAlias], *, with_changes: bool
    ) -> web.StreamResponse:
        """Stream the answer: text as soon as it cannot be part of a call, then the calls.

        An error after the first byte is sent as an event.

        Raises:
            GatewayError: the request failed before the first byte was sent.
        """
        parsed_request = exchange.request
        assert parsed_request is not None
        sender = TextSender()
        task = asyncio.create_task(self._ask_in_order(exchange, parsed_request, targets, sender))
        try:
            part = await sender.wait_for_part(task)
            if part is None and (failure := task.exception()) is not None:
                raise failure
            response = web.StreamResponse(
                headers=_build_headers(exchange, None) | {"content-type": "text/event-stream"}
            )
            await response.prepare(request)
            await _send(response, exchange, exchange.dialect.start_stream(exchange.id, parsed_request.alias))
            is_first = True
            while part is not None:
                events = exchange.dialect.stream_text(exchange.id, parsed_request.alias, part, is_first=is_first)
                await _send(response, exchange, events)
                part, is_first = await sender.wait_for_part(task), False
            await _send(
                response, exchange, self._end_stream(exchange, parsed_request, task, sender, with_changes=with_changes)
            )
            await response.write_eof()
            return response
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)  # so that the trace includes the cancelled request

    def _end_stream(
        self,
        exchange: ClientExchange,
        parsed_request: GatewayRequest,
        task: "asyncio.Task[GatewayAnswer]",
        sender: TextSender,
        *,
        with_changes: bool,
    ) -> Iterator[bytes]:
        """Set the answer or the error of the exchange, and return the last events of the stream.

        Args:
            exchange: the exchange.
            parsed_request: the request of the exchange.
            task: the task that sent the request; it has ended.
            sender: the sender of the stream's text; `has_begun` says whether text was sent.
            with_changes: whether the last events have the field `toolbench` with the changes.
        """
        failure = task.exception()
        if failure is not None:
            exchange.error = failure if isinstance(failure, GatewayError) else _INTERNAL_ERROR
            if exchange.error is _INTERNAL_ERROR:
                logger.error("Request %s failed within the gateway", exchange.id, exc_info=failure)
            return exchange.dialect.stream_error(exchange.error)
        exchange.answer = answer = replace(task.result(), id=exchange.id)
        return exchange.dialect.end_stream(parsed_request, answer, has_text=sender.has_begun, with_changes=with_changes)

    def _put_trace(self, exchange: ClientExchange) -> None:
        """Queue the trace of an exchange for storage, if it is among those that are kept."""
        target = exchange.served_by
        if target is None or not exchange.keeps_trace:
            return
        trace = exchange.build_trace(target)
        if exchange.keeps_bodies and (body_bytes := exchange.count_body_bytes()) >= LARGE_BYTES:
            self._writer.put_large(trace, body_bytes, partial(exchange.add_bodies, trace))
            return
        if exchange.keeps_bodies:
            exchange.add_bodies(trace)
        self._writer.put(trace)


async def _send(response: web.StreamResponse, exchange: ClientExchange, events: Iterator[bytes]) -> None:
    for event in events:
        if exchange.keeps_bodies:  # the same for all events: the target does not change in a stream
            exchange.response += event
        await response.write(event)


def _list_targets(name: str, aliases: Mapping[str, ServedAlias]) -> Iterator[ServedAlias]:
    """Yield the alias of this name, then those of its fallbacks that exist.

    Raises:
        GatewayError: no alias has the name.
    """
    alias = aliases.get(name)
    if alias is None:
        raise GatewayError(404, "unknown_model", f"There is no alias {name}. GET /v1/models lists them.")
    yield alias
    yield from (aliases[fallback] for fallback in alias.fallbacks if fallback in aliases)


def _build_headers(exchange: ClientExchange, answer: GatewayAnswer | None) -> dict[str, str]:
    headers = {"x-request-id": exchange.id}
    if exchange.served_by is not None:
        headers["x-toolbench-alias"] = exchange.served_by.name
        headers |= {"x-toolbench-simulated": "1"} if exchange.served_by.simulated else {}
    if answer is not None:
        headers["x-toolbench-path"] = answer.path
        headers["x-toolbench-changed"] = ",".join(answer.list_change_names()[:MAX_NAMED_CHANGES])
    return headers


def _build_error_response(dialect: Dialect, error: GatewayError, request_id: str) -> web.Response:
    headers = {"x-request-id": request_id} if request_id else {}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    return web.json_response(dialect.render_error(error), status=error.status, headers=headers)


@asynccontextmanager
async def serve(host: str, port: int) -> AsyncIterator[str]:
    """Serve until the context ends, and yield the URL.

    A request whose client disconnects is cancelled, and so is its request to the upstream. A request that still runs
    STOP_SECONDS after the end of the context is cancelled, too.

    Args:
        host: address to listen on.
        port: port to listen on; 0 for a free one.

    Raises:
        OSError: the server cannot listen on this address and port.
    """
    runner = web.AppRunner(
        Gateway().build_app(), handler_cancellation=True, access_log=None, shutdown_timeout=STOP_SECONDS
    )
    await runner.setup()
    try:
        listening_socket = _listen(host, port)
        await web.SockSite(runner, listening_socket).start()
        bound_host, bound_port = listening_socket.getsockname()[:2]
        yield f"http://[{bound_host}]:{bound_port}" if ":" in bound_host else f"http://{bound_host}:{bound_port}"
    finally:
        await runner.cleanup()


def _listen(host: str, port: int) -> socket.socket:
    """Open the listening socket; `::` stands for all addresses, also those of IPv4 if the host permits it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    is_dual_stack = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, dualstack_ipv6=is_dual_stack)
