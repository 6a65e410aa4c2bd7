"""Command that serves the simulated models.

Usage: `python -m toolbench.providers.simulated [--port 0] [--latency 1.0]`

It prints its ready line (see `ready_line`) and serves until SIGTERM or SIGINT. If it cannot start, it writes one
sentence to standard error and exits with 3.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from toolbench.providers.ready_line import (
    ReadyLine,
    ServerStartError,
    parse_port,
    print_ready_line,
    report_start_error,
)
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.server import SERVER_NAME, SimulatedServer


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a stop signal.

    Args:
        arguments: the command line's arguments; None for those of this process.

    Returns:
        The exit code.
    """
    options = _parse_arguments(arguments)
    try:
        asyncio.run(_serve(options.port, SimulatedServer(latency_factor=options.latency)))
    except ServerStartError as error:
        return report_start_error(error)
    return 0


async def _serve(port: int, server: SimulatedServer) -> None:
    stopped = asyncio.Event()
    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(stop_signal, stopped.set)
    try:
        await server.start(port)
    except OSError as error:
        raise ServerStartError(
            f"The simulated provider cannot listen on port {port}: choose another with --port."
        ) from error
    print_ready_line(ReadyLine(SERVER_NAME, server.url, server.key, next(iter(load_personas()))))
    await stopped.wait()
    await server.stop()


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m toolbench.providers.simulated", description="Serve the simulated models."
    )
    parser.add_argument("--port", type=parse_port, default=0, help="0 selects a free port")
    parser.add_argument("--latency", type=float, default=1.0, help="factor for every model's latency; 0 for none")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
