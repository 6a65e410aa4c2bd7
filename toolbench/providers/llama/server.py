"""llama.cpp's OpenAI-compatible server for one GGUF file, run in this process.

The server cannot be stopped separately from the process. Therefore every local model has its own process.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolbench.providers.ready_line import ServerStartError

try:
    import xllamacpp
except ImportError as missing:  # no wheel for this platform, or the system lacks libgomp
    xllamacpp = None
    IMPORT_FAILURE = str(missing)

SLOTS = 2
CONTEXT_PER_SLOT = 4096  # tokens; llama.cpp shares its context among the slots
TOOLS_TEMPLATE = Path(__file__).with_name("tools.jinja")


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """Options to start a server.

    Attributes:
        template: "own" for the chat template in the GGUF file, "tools" for Toolbench's template.
        port: 0 selects a free port.
    """

    weights: Path
    model: str
    template: str
    port: int = 0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Running server. Keep a reference to `server`: it stops when the object is deleted."""

    url: str
    key: str
    server: Any


def start_server(launch: LaunchOptions) -> RunningServer:
    """Load the model and serve it; return when the server answers, which takes seconds.

    Raises:
        ServerStartError: the library is missing or the model cannot be loaded.
    """
    if xllamacpp is None:
        raise ServerStartError(_explain_missing_library(IMPORT_FAILURE))
    key = f"local-{secrets.token_urlsafe(24)}"
    try:
        server = xllamacpp.Server(_build_parameters(launch, key))
    except RuntimeError as error:
        raise ServerStartError(
            f"llama.cpp could not load {launch.weights.name} with the template '{launch.template}': {error}."
        ) from error
    return RunningServer(url=str(server.listening_address).rstrip("/"), key=key, server=server)


def _build_parameters(launch: LaunchOptions, key: str) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(launch.weights)
    parameters.model_alias = {launch.model}  # without it /v1/models shows the file's path
    parameters.port = launch.port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = SLOTS * CONTEXT_PER_SLOT
    parameters.cache_ram_mib = 0  # else memory grows by hundreds of megabytes
    parameters.verbosity = -1
    parameters.ui = False
    parameters.api_keys = [key]
    threads = max(1, (os.cpu_count() or 2) - 1)  # with every core in use, threads wait for each other
    parameters.cpuparams.n_threads = threads
    parameters.cpuparams_batch.n_threads = threads
    parameters.use_jinja = True
    if launch.template == "tools":
        parameters.chat_template = TOOLS_TEMPLATE.read_text(encoding="utf-8")
    return parameters


def _explain_missing_library(why: str) -> str:
    if "libgomp" in why:
        return "The local model needs the system library libgomp: install it (Debian: apt-get install libgomp1)."
    return f"The local model cannot run on this machine ({why}); everything else works without it."
