"""Command that serves one GGUF model with llama.cpp.

Usage: `python -m toolbench.providers.llama --template own|tools [--gguf PATH] [--name NAME] [--port 0]`

The command prints its ready line (see `ready_line`) and serves until SIGTERM or SIGINT. If the server cannot start, the
command writes one sentence to standard error and exits with code 3.
"""

import argparse
import signal
import sys
from collections.abc import Sequence

from toolbench.providers.llama.server import LaunchOptions, start_server
from toolbench.providers.llama.weights import build_model_name, find_weights
from toolbench.providers.ready_line import (
    ReadyLine,
    ServerStartError,
    parse_port,
    print_ready_line,
    report_start_error,
)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the server, print the ready line and wait for a stop signal.

    Args:
        arguments: the command line's arguments; None for those of this process.

    Returns:
        The exit code.
    """
    options = _parse_arguments(arguments)
    # Threads inherit the mask, so none of the library's threads receives the signals that sigwait below waits for.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    model = build_model_name(options.gguf)
    try:
        weights = find_weights(options.gguf)
        server = start_server(LaunchOptions(weights=weights, model=model, template=options.template, port=options.port))
    except ServerStartError as error:
        return report_start_error(error)
    print_ready_line(ReadyLine(options.name or f"local-{options.template}", server.url, server.key, model))
    signal.sigwait(STOP_SIGNALS)
    return 0


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m toolbench.providers.llama", description="Serve one GGUF model.")
    parser.add_argument(
        "--template",
        choices=("own", "tools"),
        required=True,
        help="own: chat template in the model file; tools: Toolbench's",
    )
    parser.add_argument("--gguf", default="", help="path of a model file; default: the packaged small model")
    parser.add_argument("--name", default="", help="name of the local server; default: local-own or local-tools")
    parser.add_argument("--port", type=parse_port, default=0, help="0 selects a free port")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
