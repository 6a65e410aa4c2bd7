"""HTTP server of the simulated models.

Its routes are `/health`, `/v1/models`, `/v1/chat/completions`, `/v1/completions`, `/v1/responses` and `/v1/messages`.
The header `x-simulated` of a model's response names the model and the faults that changed the response. For errors that
occur before a model is found, the header is `simulated`.
"""

import asyncio
import json
import secrets
from dataclasses import dataclass, field

from aiohttp import web

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.answer import RefusedTurns, SimulatedAnswer, build_answer
from toolbench.providers.simulated.error_replies import Reply, build_error_reply, build_key_error
from toolbench.providers.simulated.personas import Persona, describe_persona, load_personas
from toolbench.providers.simulated.wire_formats import CHAT, COMPLETIONS, MESSAGES, RESPONSES, SimulatedWireFormat

SERVER_NAME = "simulated"
MAX_REQUEST_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class SimulatedServer:
    """Server of the simulated models on this machine.

    Attributes:
        key: the key that requests must carry.
        latency_factor: factor for every model's latency; 0 for none.
        url: address without a path; "" before `start`.
        refused_turns: turns that recovering models have refused.
        runner: runner of the web application; None before `start`.
    """

    key: str = field(default_factory=lambda: f"sim-{secrets.token_urlsafe(24)}")
    latency_factor: float = 1.0
    url: str = ""
    refused_turns: RefusedTurns = field(default_factory=RefusedTurns)
    runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1.

        Args:
            port: 0 selects a free port.

        Raises:
            OSError: the server cannot listen on the port, which may be in use.
        """
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_get("/health", self.answer_health)
        app.router.add_get("/v1/models", self.answer_models)
        app.router.add_post("/v1/chat/completions", self.answer_chat)
        app.router.add_post("/v1/completions", self.answer_completions)
        app.router.add_post("/v1/messages", self.answer_messages)
        app.router.add_post("/v1/responses", self.answer_responses)
        self.runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop the server if it was started."""
        if self.runner is not None:
            await self.runner.cleanup()

    def find_models(self, name: str) -> tuple[Persona, ...]:
        """Return the model of that name as a tuple; () if there is none.

        A subclass may return further models, whose faults occur in the answers of the first model, too.
        """
        model = load_personas().get(name)
        return (model,) if model else ()

    async def answer_health(self, request: web.Request) -> web.Response:
        """Answer `/health`; no key is required."""
        return web.json_response({"status": "ok"})

    async def answer_models(self, request: web.Request) -> web.Response:
        """Answer `/v1/models` with all simulated models."""
        if not self._is_authorised(request):
            return _build_response(build_key_error(), SERVER_NAME)
        return web.json_response({"object": "list", "data": list(map(describe_persona, load_personas().values()))})

    async def answer_chat(self, request: web.Request) -> web.StreamResponse:
        """Answer `/v1/chat/completions`."""
        return await self._answer_request(request, CHAT)

    async def answer_completions(self, request: web.Request) -> web.StreamResponse:
        """Answer `/v1/completions`."""
        return await self._answer_request(request, COMPLETIONS)

    async def answer_messages(self, request: web.Request) -> web.StreamResponse:
        """Answer `/v1/messages`."""
        return await self._answer_request(request, MESSAGES)

    async def answer_responses(self, request: web.Request) -> web.StreamResponse:
        """Answer `/v1/responses`."""
        return await self._answer_request(request, RESPONSES)

    async def _answer_request(self, request: web.Request, wire_format: SimulatedWireFormat) -> web.StreamResponse:
        if not self._is_authorised(request):
            return _build_response(wire_format.render_error(build_key_error()), SERVER_NAME)
        try:
            body = _parse_body(await request.read())
        except ValueError as error:
            error_reply = build_error_reply(400, f"{error} (simulated)", "invalid_request_error")
            return _build_response(wire_format.render_error(error_reply), SERVER_NAME)
        name = str(body.get("model")).removeprefix(wire_format.name_prefix)
        model, *further_models = self.find_models(name) or (None,)
        if model is None:
            error_reply = build_error_reply(404, f"No such model: {body.get('model')} (simulated)", "not_found")
            return _build_response(wire_format.render_error(error_reply), SERVER_NAME)
        answer = build_answer(body, model, self.refused_turns, wire_format, further_models)
        label = f"{model.slug}; drift={','.join(answer.faults)}" if answer.faults else model.slug
        if answer.reply.chunks:
            return await self._stream_answer(answer, label, request)
        await self._wait(answer, request)
        return _build_response(answer.reply, label)

    def _is_authorised(self, request: web.Request) -> bool:
        """Return whether the request carries the key, in the header `x-api-key` or `Authorization`."""
        key = request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        return secrets.compare_digest(key.encode(errors="surrogateescape"), self.key.encode())

    async def _stream_answer(self, answer: SimulatedAnswer, label: str, request: web.Request) -> web.StreamResponse:
        """Send a streamed answer. Half its latency passes before the first chunk, the rest evenly after the chunks."""
        response = web.StreamResponse(headers={"Content-Type": answer.reply.content_type, "x-simulated": label})
        await asyncio.sleep(answer.seconds * self.latency_factor / 2)
        await response.prepare(request)
        for chunk in answer.reply.chunks:
            await response.write(chunk)
            await asyncio.sleep(answer.seconds * self.latency_factor / 2 / len(answer.reply.chunks))
        await response.write_eof()
        return response

    async def _wait(self, answer: SimulatedAnswer, request: web.Request) -> None:
        """Wait for the answer's latency; never return if the answer hangs or drops the connection."""
        await asyncio.sleep(answer.seconds * self.latency_factor)
        if answer.reply.drops and request.transport is not None:
            request.transport.abort()
        if answer.reply.hangs or answer.reply.drops:
            await asyncio.Event().wait()  # the server cancels it when the client closes the connection


def _parse_body(raw: bytes) -> JsonObject:
    """Return the request's body as a JSON object.

    Raises:
        ValueError: the body is not a JSON object; the text says so.
    """
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError("the request is not JSON") from error
    if not isinstance(body, dict):
        raise ValueError("the request is not a JSON object")
    return body


def _build_response(reply: Reply, label: str) -> web.Response:
    headers = {"Content-Type": reply.content_type, "x-simulated": label, **reply.headers}
    return web.Response(body=reply.body, status=reply.status, headers=headers)
