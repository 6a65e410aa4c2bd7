"""Start of llama.cpp's OpenAI-compatible server for one GGUF file, in this process.

Every local model has a process of its own (`python -m toolbench.providers.llama`).
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolbench.providers.ready_line import ServerStartError

try:
    import xllamacpp
except ImportError as error:  # no wheel for this platform, or the system lacks libgomp
    xllamacpp = None
    IMPORT_ERROR_TEXT = str(error)

SLOT_COUNT = 2  # requests that the server processes at the same time
CONTEXT_TOKENS_PER_SLOT = 4096
TOOLS_TEMPLATE = Path(__file__).with_name("tools.jinja")


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """Options of a server.

    Attributes:
        weights: path of the GGUF file.
        model: name of the model in requests.
        template: "own" for the chat template in the GGUF file, "tools" for Toolbench's template.
        port: 0 selects a free port.
    """

    weights: Path
    model: str
    template: str
    port: int = 0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Server that runs in this process.

    Attributes:
        url: address without API prefix and without trailing slash.
        key: API key of the server.
        server: llama.cpp's server, which stops when this reference is deleted.
    """

    url: str
    key: str
    server: Any


def start_server(options: LaunchOptions) -> RunningServer:
    """Load the model and start its server; return when the server answers, after some seconds.

    Raises:
        ServerStartError: xllamacpp cannot be imported, or the model cannot be loaded.
    """
    if xllamacpp is None:
        raise ServerStartError(_explain_missing_library(IMPORT_ERROR_TEXT))
    key = f"local-{secrets.token_urlsafe(24)}"
    try:
        server = xllamacpp.Server(_build_parameters(options, key))
    except RuntimeError as error:
        raise ServerStartError(
            f"llama.cpp could not load {options.weights.name} with the template '{options.template}': {error}."
        ) from error
    return RunningServer(url=str(server.listening_address).rstrip("/"), key=key, server=server)


def _build_parameters(options: LaunchOptions, key: str) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(options.weights)
    parameters.model_alias = {options.model}  # without it /v1/models shows the file's path
    parameters.port = options.port
    parameters.n_parallel = SLOT_COUNT
    parameters.n_ctx = SLOT_COUNT * CONTEXT_TOKENS_PER_SLOT  # llama.cpp divides the context among the slots
    parameters.cache_ram_mib = 0  # otherwise memory grows by hundreds of megabytes
    parameters.verbosity = -1
    parameters.ui = False
    parameters.api_keys = [key]
    thread_count = max(1, (os.cpu_count() or 2) - 1)  # with every core in use, threads wait for each other
    parameters.cpuparams.n_threads = thread_count
    parameters.cpuparams_batch.n_threads = thread_count
    parameters.use_jinja = True
    if options.template == "tools":
        parameters.chat_template = TOOLS_TEMPLATE.read_text(encoding="utf-8")
    return parameters


def _explain_missing_library(error_text: str) -> str:
    if "libgomp" in error_text:
        return "The local model needs the system library libgomp: install it (Debian: apt-get install libgomp1)."
    return f"The local model cannot run on this machine ({error_text}); everything else works without it."
