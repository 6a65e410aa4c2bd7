"""Tests that every error and finding of the engine has a cause, and that codes are stable."""

import json
import re
from importlib import resources

from toolbench.evals.causes.table import classify_envelope, load_causes, lookup_code, read_taxonomy_version
from toolbench.evals.data_files import read_table
from toolbench.evals.judging.failure_classes import load_classes

GROUPS = ("transport", "request", "answer", "call", "shape", "arguments", "schema", "tool", "task")
COLUMNS = ("exchange", "findings", "envelope", "changes", "violations", "classes")
PUBLISHED = {
    1: "never_sent our_error connection_failed read_timeout rate_limited access_refused route_unknown server_failed "
    "not_an_answer exchange_failed deadline_passed tools_refused tools_dropped request_refused context_overflow "
    "content_refused stream_cut model_format_error cut_by_length empty_answer empty_final answer_refused no_call "
    "needless_call call_in_tags call_in_text call_in_reasoning call_unreadable unasked_calls constraint_ignored "
    "calls_ignored function_call calls_not_a_list arguments_as_object arguments_blank calls_wrapped name_unclean "
    "ids_wrong finish_wrong text_form_loose arguments_repaired arguments_cut arguments_not_json arguments_too_large "
    "schema_missing schema_type schema_enum schema_range schema_extra schema_other tool_unknown arguments_refused "
    "tool_failed tool_output_too_large tool_timeout tool_crashed turns_used_up task_not_done",
    2: "calls_apart",
    3: "",  # another rule for calls in the text, no new code
}


def test_load_causes_has_exactly_the_published_codes() -> None:
    assert {code for codes in PUBLISHED.values() for code in codes.split()} == set(load_causes())
    assert read_taxonomy_version() == max(PUBLISHED)


def test_load_causes_rows_have_sentence_remedy_and_link() -> None:
    for row in load_causes().values():
        assert re.fullmatch(r"[a-z_]{4,40}", row.code)
        assert row.group in GROUPS
        assert row.sentence.endswith(".")
        assert row.remedy.endswith(".")
        assert row.link.startswith("/")


def test_remedies_name_no_folder_of_one_kind_of_installation() -> None:
    remedies = [*(row.remedy for row in load_causes().values()), *(row.remedy for row in load_classes())]
    assert [remedy for remedy in remedies if "var/" in remedy] == []


def test_lookup_code_knows_every_exchange_error_code() -> None:
    table = resources.files("toolbench.providers").joinpath("data", "outcomes.json").read_text("utf-8")
    codes = {row["code"] for row in json.loads(table)["rows"]} - {"cancelled"}
    assert {code for code in codes if not lookup_code("exchange", code)} == set()


def test_lookup_code_knows_every_envelope_code() -> None:
    codes = {code for row in load_classes() for code in row.envelope}
    assert {code for code in codes if not lookup_code("envelope", code)} == set()


def test_load_causes_maps_no_key_twice() -> None:
    for column in COLUMNS:
        keys = [key for row in load_causes().values() for key in getattr(row, column)]
        assert len(keys) == len(set(keys)), column


def test_load_causes_harmless_only_where_the_table_says_so() -> None:
    harmless_codes = {row["code"] for row in read_table("wire_causes")["rows"] if "harmless" in row}
    assert {row.code for row in load_causes().values() if row.harmless} == harmless_codes


def test_classify_envelope_uses_the_first_known_code() -> None:
    assert classify_envelope("NOBODY_KNOWS_IT", "TOOL_NOT_ALLOWED", "ARGUMENTS_TOO_LARGE") == "tool_unknown"
    assert classify_envelope("NOBODY_KNOWS_IT") == classify_envelope() == "tool_failed"
