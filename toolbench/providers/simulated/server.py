"""The simulated provider over real HTTP: `/v1/models`, `/v1/chat/completions`, `/v1/completions`, `/v1/messages` in
Anthropic's shape, `/health`. Every answer says that it is simulated, in the header `x-simulated`, which names the
persona and, where it drifted, the drift."""

import asyncio
import json
import secrets
from dataclasses import dataclass, field

from aiohttp import web

from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.answer import RefusedTurns, SimulatedAnswer, build_answer
from toolbench.providers.simulated.error_replies import Reply, build_error_reply
from toolbench.providers.simulated.personas import Persona, describe_persona, load_personas
from toolbench.providers.simulated.wire_formats import CHAT, MESSAGES, PROMPT, SimulatedWireFormat

SERVER_NAME = "simulated"
MAX_REQUEST_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class SimulatedServer:
    """`latency` scales every persona's own; 0 answers at once. `url` is set by `start`."""

    key: str = field(default_factory=lambda: f"sim-{secrets.token_urlsafe(24)}")
    latency: float = 1.0
    url: str = ""
    refusals: RefusedTurns = field(default_factory=RefusedTurns)
    runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        """Listens on 127.0.0.1. Raises OSError when the port is taken."""
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_get("/health", self.health)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_post("/v1/completions", self.completions)
        app.router.add_post("/v1/messages", self.messages)
        self.runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self.runner is not None:
            await self.runner.cleanup()

    def find_personas(self, name: str) -> tuple[Persona, ...]:
        """Return the persona of that name, then those whose drifts it has as well; () where there is none."""
        found = load_personas().get(name)
        return (found,) if found else ()

    async def health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def models(self, request: web.Request) -> web.Response:
        if not self._is_authorised(request):
            return _build_response(_build_key_error(), SERVER_NAME)
        return web.json_response({"object": "list", "data": [describe_persona(p) for p in load_personas().values()]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer_request(request, CHAT)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        return await self._answer_request(request, PROMPT)

    async def messages(self, request: web.Request) -> web.StreamResponse:
        return await self._answer_request(request, MESSAGES)

    async def _answer_request(self, request: web.Request, voice: SimulatedWireFormat) -> web.StreamResponse:
        if not self._is_authorised(request):
            return _build_response(voice.render_error(_build_key_error()), SERVER_NAME)
        try:
            body = _parse_body(await request.read())
        except ValueError as error:
            return _build_response(
                voice.render_error(build_error_reply(400, f"{error} (simulated)", "invalid_request_error")), SERVER_NAME
            )
        persona, *beside = self.find_personas(str(body.get("model")).removeprefix(voice.name_prefix)) or (None,)
        if persona is None:
            unknown = build_error_reply(404, f"No such model: {body.get('model')} (simulated)", "not_found")
            return _build_response(voice.render_error(unknown), SERVER_NAME)
        given = build_answer(body, persona, self.refusals, voice, beside)
        label = f"{persona.slug}; drift={persona.drift}" if given.has_fault else persona.slug
        if given.reply.chunks:
            return await self._stream(given, label, request)
        await self._wait(given, request)
        return _build_response(given.reply, label)

    def _is_authorised(self, request: web.Request) -> bool:
        """Anthropic takes its key in either header."""
        key = request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        return secrets.compare_digest(key.encode(), self.key.encode())

    async def _stream(self, given: SimulatedAnswer, label: str, request: web.Request) -> web.StreamResponse:
        """Half of the latency passes before the first chunk, the rest between the chunks."""
        response = web.StreamResponse(headers={"Content-Type": given.reply.content_type, "x-simulated": label})
        await asyncio.sleep(given.seconds * self.latency / 2)
        await response.prepare(request)
        for chunk in given.reply.chunks:
            await response.write(chunk)
            await asyncio.sleep(given.seconds * self.latency / 2 / len(given.reply.chunks))
        await response.write_eof()
        return response

    async def _wait(self, given: SimulatedAnswer, request: web.Request) -> None:
        await asyncio.sleep(given.seconds * self.latency)
        if given.reply.drops and request.transport is not None:
            request.transport.abort()
        if given.reply.hangs or given.reply.drops:
            await asyncio.Event().wait()  # until the client goes away


def _parse_body(raw: bytes) -> JsonObject:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ValueError("the request is not JSON") from error
    if not isinstance(body, dict):
        raise ValueError("the request is not a JSON object")
    return body


def _build_key_error() -> Reply:
    return build_error_reply(401, "Invalid API key (simulated)", "authentication_error")


def _build_response(reply: Reply, label: str) -> web.Response:
    headers = {"Content-Type": reply.content_type, "x-simulated": label, **reply.headers}
    return web.Response(body=reply.body, status=reply.status, headers=headers)
