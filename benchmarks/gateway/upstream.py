"""Provider that answers at once with a call, or streams texts with the time of their sending.

`python -m benchmarks.gateway.upstream` prints its address as JSON. The last message of a streamed request has the
number of texts and the seconds between them.
"""

import asyncio
import json
import time
from contextlib import suppress

from aiohttp import web

_CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Berlin"}'}}
_MESSAGE = {"role": "assistant", "content": None, "tool_calls": [_CALL]}
_ANSWER = json.dumps(
    {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": _MESSAGE}],
        "usage": {"prompt_tokens": 60, "completion_tokens": 12, "total_tokens": 72},
    }
).encode()


async def _answer(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    if not body.get("stream"):
        return web.Response(body=_ANSWER, content_type="application/json")
    count, pause = body["messages"][-1]["content"].split()
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    with suppress(ConnectionError):  # the client has closed the connection
        for _ in range(int(count)):
            await response.write(_render_event({"role": "assistant", "content": f"{time.monotonic_ns()} "}, None))
            await asyncio.sleep(float(pause))
        await response.write(_render_event({}, "stop") + b"data: [DONE]\n\n")
    return response


def _render_event(delta: dict[str, object], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


async def _serve() -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    host, port = runner.addresses[0][:2]
    print(json.dumps({"url": f"http://{host}:{port}"}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
