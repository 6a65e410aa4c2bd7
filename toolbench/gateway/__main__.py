"""Command of the gateway: `python -m toolbench.gateway [--host 127.0.0.1] [--port 8001]`.

The gateway prints its ready line, JSON with its address, and serves until SIGTERM or SIGINT. If it cannot start, it
writes the reason to standard error and exits with 3.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack

import django

from toolbench.garbage_collection import collect_rarely, freeze_loaded_objects
from toolbench.installation import build_command
from toolbench.providers.ready_line import (
    ReadyLine,
    ServerStartError,
    parse_port,
    print_ready_line,
    report_start_error,
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")
django.setup()

from toolbench.gateway.server import serve  # noqa: E402  # Django's models cannot be imported before its set-up

SERVER_NAME = "gateway"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT and return the exit code.

    Args:
        arguments: arguments of the command; None for those of the process.
    """
    options = _parse_arguments(arguments)
    freeze_loaded_objects()
    collect_rarely()
    try:
        asyncio.run(_serve(options.host, options.port))
    except ServerStartError as error:
        return report_start_error(error)
    return 0


async def _serve(host: str, port: int) -> None:
    stopped = asyncio.Event()
    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(stop_signal, stopped.set)
    async with AsyncExitStack() as stack:
        try:
            url = await stack.enter_async_context(serve(host, port))
        except OSError as error:
            is_lookup_error = (error.errno or 0) < 0  # name resolution has negative codes, which os.strerror lacks
            reason = error.strerror if is_lookup_error else os.strerror(error.errno or 0)
            raise ServerStartError(
                f"The gateway cannot listen on {host}:{port} ({reason}): end the program that uses this port, "
                f"or choose another one. With `{build_command('up')}`, the gateway uses the port PORT + 1."
            ) from error
        print_ready_line(ReadyLine(SERVER_NAME, url, "", ""))
        await stopped.wait()


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m toolbench.gateway", description="Serve aliases to clients of model APIs."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=parse_port, default=8001, help="0 takes a free port")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
