"""Command that serves one GGUF model with llama.cpp.

Usage: `python -m toolbench.providers.llama --template own|tools [--gguf PATH] [--name NAME] [--port 0]`

It prints one JSON line (name, url, key, model) when ready and serves until SIGTERM. When it cannot start, it writes one
sentence to standard error and exits with 3.
"""

import argparse
import signal
import sys
from collections.abc import Sequence

from toolbench.providers.llama.server import LaunchOptions, start_server
from toolbench.providers.llama.weights import build_model_name, find_weights
from toolbench.providers.ready_line import ReadyLine, ServerStartError, print_ready_line, report_start_error

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the server, print the ready line, wait for a stop signal and return the exit code."""
    chosen = _parse_arguments(arguments)
    # Blocked before any thread exists, so that the library's threads never receive them but sigwait below does.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    model = build_model_name(chosen.gguf)
    try:
        weights = find_weights(chosen.gguf)
        serving = start_server(LaunchOptions(weights=weights, model=model, template=chosen.template, port=chosen.port))
    except ServerStartError as error:
        return report_start_error(error)
    print_ready_line(ReadyLine(chosen.name or f"local-{chosen.template}", serving.url, serving.key, model))
    signal.sigwait(STOP_SIGNALS)
    return 0


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m toolbench.providers.llama", description="Serves one GGUF model.")
    parser.add_argument("--template", choices=("own", "tools"), required=True, help="the GGUF's own, or ours")
    parser.add_argument("--gguf", default="", help="path of a model file; default: the packaged small model")
    parser.add_argument("--name", default="", help="the service's name; default: local-own or local-tools")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
