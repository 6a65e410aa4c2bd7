"""All text formats by name, and `auto`, which combines them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

from toolbench.engine.errors import PlanError
from toolbench.engine.formats.families.anthropic_xml import ANTHROPIC_INVOKE, ANTHROPIC_XML
from toolbench.engine.formats.families.cofl import COMMAND4
from toolbench.engine.formats.families.cohere import COHERE, COMMAND_R
from toolbench.engine.formats.families.deepseek import (
    DEEPSEEK_V3,
    DEEPSEEK_V4,
    DEEPSEEK_V31,
    DEEPSEEK_V32,
    DEEPSEEK_V41,
)
from toolbench.engine.formats.families.fenced import FENCED_JSON, build_whole_fence_blocks
from toolbench.engine.formats.families.gemma import FUNCTION_GEMMA, GEMMA3, GEMMA4, build_whole_tool_code_blocks
from toolbench.engine.formats.families.generic_json import GENERIC_JSON, build_bare_json_blocks
from toolbench.engine.formats.families.generic_xml import GENERIC_XML
from toolbench.engine.formats.families.glm import GLM45, GLM47, HUNYUAN_V3, K2_HORIZON, LONGCAT
from toolbench.engine.formats.families.harmony import HARMONY
from toolbench.engine.formats.families.hermes import HERMES
from toolbench.engine.formats.families.inkling import INKLING
from toolbench.engine.formats.families.kimi import KIMI_K2, KIMI_K3
from toolbench.engine.formats.families.llama import LLAMA3_JSON, LLAMA3_PYTHON_TAG
from toolbench.engine.formats.families.marked_json import MARKED_JSON_FORMATS
from toolbench.engine.formats.families.minicpm import MINICPM5
from toolbench.engine.formats.families.minimax import DOTS, MINIMAX_M1, MINIMAX_M2
from toolbench.engine.formats.families.minimax_m3 import MINIMAX_M3
from toolbench.engine.formats.families.mistral import (
    MISTRAL_V2,
    MISTRAL_V3,
    MISTRAL_V7,
    MISTRAL_V11,
    MISTRAL_V13,
    MISTRAL_V15,
)
from toolbench.engine.formats.families.named_lines import FUNCTIONARY_V31, FUNCTIONARY_V32, REACT
from toolbench.engine.formats.families.plamo import PLAMO3
from toolbench.engine.formats.families.pythonic import LFM2, LLAMA4, OLMO3, PYTHONIC, build_bare_list_blocks
from toolbench.engine.formats.families.qwen_coder import QWEN3_CODER, SEED_OSS
from toolbench.engine.formats.families.step import STEP3
from toolbench.engine.formats.json_calls import NamedJsonReader
from toolbench.engine.formats.specification import Block, BlockReader, TextFormat
from toolbench.engine.formats.tagged_calls import FirstMatchReader

AUTO = "auto"
FORMATS = (
    *(HERMES, QWEN3_CODER, SEED_OSS, GENERIC_XML, GLM45, GLM47, LONGCAT, K2_HORIZON, HUNYUAN_V3),
    *(LLAMA3_JSON, LLAMA3_PYTHON_TAG, LLAMA4, PYTHONIC, LFM2, OLMO3),
    *(MISTRAL_V2, MISTRAL_V3, MISTRAL_V7, MISTRAL_V11, MISTRAL_V13, MISTRAL_V15),
    *(DEEPSEEK_V3, DEEPSEEK_V31, DEEPSEEK_V32, DEEPSEEK_V4, DEEPSEEK_V41, STEP3),
    *(KIMI_K2, KIMI_K3, MINIMAX_M1, MINIMAX_M2, MINIMAX_M3, DOTS, MINICPM5, PLAMO3, COMMAND4),
    *(HARMONY, GEMMA3, FUNCTION_GEMMA, GEMMA4, *MARKED_JSON_FORMATS),
    *(COHERE, COMMAND_R, INKLING, ANTHROPIC_XML, ANTHROPIC_INVOKE),
    *(REACT, FUNCTIONARY_V31, FUNCTIONARY_V32, GENERIC_JSON, FENCED_JSON),
)


def list_format_names() -> tuple[str, ...]:
    """Return the names of all formats; the last is `auto`, which parses them all and renders like hermes."""
    return tuple(_FORMATS_BY_NAME)


def get_format(name: str) -> TextFormat:
    """Return the format of this name.

    Raises:
        PlanError: the format is unknown.
    """
    if name not in _FORMATS_BY_NAME:
        raise PlanError(f"There is no text format {name!r}; known are {', '.join(_FORMATS_BY_NAME)}.")
    return _FORMATS_BY_NAME[name]


def _build_auto_format() -> TextFormat:
    """Build the format that parses texts in all other formats."""
    blocks = _merge_blocks(block for text_format in FORMATS for block in text_format.blocks)
    start_markers = {block.start_marker for block in blocks}
    dropped_tokens = (
        token for text_format in FORMATS for token in text_format.dropped_tokens if token not in start_markers
    )
    return TextFormat(
        AUTO,
        blocks,
        HERMES.layout,
        HERMES.prompt,
        dropped_tokens=tuple(dict.fromkeys(dropped_tokens)),
        reasoning_markers=tuple(
            dict.fromkeys(pair for text_format in FORMATS for pair in text_format.reasoning_markers)
        ),
        build_bare_blocks=lambda names: (
            *build_bare_json_blocks(names),
            *build_bare_list_blocks(names),
            *build_whole_tool_code_blocks(names),
            *build_whole_fence_blocks(names),
        ),
        build_named_blocks=_build_named_blocks,
        is_native=False,
        treats_tokens_as_markup=True,
    )


def _build_reasoning_format(auto_format: TextFormat) -> TextFormat:
    """Build a format that reads only reasoning, between the reasoning markers of any format."""
    return TextFormat(
        "", (), HERMES.layout, HERMES.prompt, reasoning_markers=auto_format.reasoning_markers, is_native=False
    )


def _build_named_blocks(names: Sequence[str]) -> tuple[Block, ...]:
    blocks = (block for text_format in FORMATS for block in text_format.build_named_blocks(names))
    return tuple({block.start_marker: block for block in blocks}.values())


def _merge_blocks(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return each block once.

    Blocks with `body_starts` come first. Of the others, those with the same start marker are joined into one block,
    whose reader tries all of their readers.
    """
    unique_blocks: list[Block] = []
    for block in blocks:
        if block not in unique_blocks:
            unique_blocks.append(block)
    blocks_by_start_marker: dict[str, list[Block]] = {}
    for block in unique_blocks:
        if not block.body_starts:
            blocks_by_start_marker.setdefault(block.start_marker, []).append(block)
    return (
        *(block for block in unique_blocks if block.body_starts),
        *(reduce(_join_blocks, joinable_blocks) for joinable_blocks in blocks_by_start_marker.values()),
    )


def _join_blocks(first_block: Block, second_block: Block) -> Block:
    """Return the first block, extended by the reader and the markers of the second."""
    return replace(
        first_block,
        reader=_join_readers(first_block.reader, second_block.reader),
        end_markers=tuple(dict.fromkeys((*first_block.end_markers, *second_block.end_markers))),
        next_markers=tuple(dict.fromkeys((*first_block.next_markers, *second_block.next_markers))),
        value_markers=first_block.value_markers or second_block.value_markers,
    )


def _join_readers(first_reader: BlockReader, second_reader: BlockReader) -> BlockReader:
    """Return a reader that tries both readers.

    Two NamedJsonReaders become one, which tries both headings before its fallback to JSON without a heading. The
    fallback must come last, because the arguments may themselves have the form of a call.
    """
    if not (isinstance(first_reader, NamedJsonReader) and isinstance(second_reader, NamedJsonReader)):
        return FirstMatchReader((first_reader, second_reader))
    parse_first_heading, parse_second_heading = first_reader.parse_heading, second_reader.parse_heading

    def parse_heading(text: str) -> tuple[str, str]:
        name_and_id = parse_first_heading(text)
        return name_and_id if name_and_id[0] else parse_second_heading(text)

    return replace(first_reader, parse_heading=parse_heading)


_FORMATS_BY_NAME = {text_format.name: text_format for text_format in (*FORMATS, _build_auto_format())}
REASONING_FORMAT = _build_reasoning_format(_FORMATS_BY_NAME[AUTO])
