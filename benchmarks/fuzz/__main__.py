"""Coverage-guided fuzzing of the code that reads what models and endpoints write.

`nice -n 19 python -m benchmarks.fuzz --seconds 1200` ends at the first violation and keeps its input in the folder
`--kept`. The same command with `--again FILE` runs that input alone.
"""

import argparse
import importlib
import json
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import atheris

MAX_INPUT_BYTES = 4096  # bytes of one input
FIRST_INPUT_TARGETS = 4  # each first input is written for so many targets, the first ones of TARGETS


def load_instrumented_targets() -> ModuleType:
    """Import the targets with the engine's code instrumented for coverage."""
    with atheris.instrument_imports(include=["toolbench.engine"]):
        return importlib.import_module("benchmarks.fuzz.targets")


def list_words() -> list[str]:
    """Return texts that formats and endpoints write, from which the fuzzer builds inputs."""
    formats = importlib.import_module("toolbench.engine.formats.registry").FORMATS
    found = {
        '"choices"',
        '"delta"',
        '"tool_calls"',
        '"arguments"',
        '"name"',
        "data: ",
        "[DONE]",
        "```json",
        "get_weather",
    }
    for form in formats:
        found |= {*form.dropped_tokens, *(word for pair in form.reasoning_markers for word in pair)}
        for block in (*form.blocks, *form.build_named_blocks(["ping"]), *form.build_bare_blocks(["ping"])):
            found |= {
                block.start_marker,
                *block.end_markers,
                *block.next_markers,
                *block.body_starts,
                *(block.value_markers or ()),
            }
    return sorted(word for word in found if word.strip())


def list_first_inputs() -> list[str]:
    """Return two calls in every format, a body and a stream."""
    formats = importlib.import_module("toolbench.engine.formats")
    call = formats.TextCall("get_weather", {"city": "Oslo", "days": 2, "at": {"x": [1, None]}}, "abc123def")
    written = [formats.render([call, call], format=name, text="So.") for name in formats.list_format_names()]
    message = {"content": "So.", "tool_calls": [{"id": "a", "function": {"name": "ping", "arguments": "{}"}}]}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
    delta = json.dumps({"choices": [{"delta": message, "finish_reason": "stop"}]})
    return [*written, body, f"data: {delta}\n\ndata: [DONE]\n\n"]


def _write_corpus(folder: Path) -> list[str]:
    """Write the dictionary and the first inputs; return the fuzzer's arguments that name them."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for place, text in enumerate(list_first_inputs()):
        for target in range(FIRST_INPUT_TARGETS):
            (corpus / f"{place}-{target}").write_bytes(bytes([target, 0, 1, place % 256, 3]) + text.encode())
    lines = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in list_words())
    (folder / "words").write_text("".join(f'"{line}"\n' for line in lines))
    return [f"-dict={folder / 'words'}", str(corpus)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=1200, help="time for fuzzing (default 1200)")
    parser.add_argument("--seed", type=int, default=1, help="of the fuzzer (default 1)")
    parser.add_argument("--kept", type=Path, default=Path("var/fuzz"), help="folder for inputs with a violation")
    parser.add_argument("--again", type=Path, help="run this input alone")
    options = parser.parse_args()
    run_input = load_instrumented_targets().run_input
    if options.again:
        run_input(options.again.read_bytes())
        return
    options.kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        limits = [
            f"-max_total_time={options.seconds}",
            f"-max_len={MAX_INPUT_BYTES}",
            f"-seed={options.seed}",
            "-timeout=60",
            "-len_control=10",
        ]
        kept = [f"-artifact_prefix={options.kept}/", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *limits, *kept, *_write_corpus(Path(folder))], run_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
