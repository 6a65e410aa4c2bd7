"""A chat endpoint that takes a fixed time for every answer and hardly any CPU, in a process of its own.

`python -m benchmarks.slow_server SECONDS` prints its port. A conversation without tool results is answered with a
call, the second round too, the third with the final text: one trial is three requests and two tool executions."""

import asyncio
import json
import sys

PATCH = {"city": "Oslo", "note": "x" * 200}


def _answer(message: dict[str, object], finish_reason: str) -> bytes:
    body = {
        "id": "bench",
        "object": "chat.completion",
        "model": "bench",
        "choices": [{"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 60, "total_tokens": 460},
    }
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


FUNCTION = {"name": "get_weather", "arguments": json.dumps(PATCH)}
CALL = _answer({"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}]}, "tool_calls")
FINAL = _answer({"content": "Done."}, "stop")


class Connection(asyncio.Protocol):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = bytes(self._received).partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(body) >= length:
            self._received.clear()
            answer = CALL if body.count(b'"role":"tool"') < 2 else FINAL
            asyncio.get_running_loop().call_later(self._seconds, self._transport.write, answer)


async def serve(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(seconds), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
