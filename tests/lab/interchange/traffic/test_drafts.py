"""Drafts from traffic: equal requests become one, the most frequent answer is expected, secrets are replaced."""

import json
from typing import Any

import pytest

from tests.factories import make_provider
from tests.lab.interchange.traffic.records import ANSWER, FORMS, MESSAGES, build_logged
from toolbench.evals.user_cases.parse import parse_case
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.interchange.traffic.drafts import import_traffic
from toolbench.lab.interchange.traffic.masking import mask_secrets
from toolbench.lab.interchange.traffic.review import accept_drafts, get_draft_page, reject_drafts
from toolbench.lab.models import Case, TrafficDraft
from toolbench.providers.masking.secrets import Masker

pytestmark = pytest.mark.django_db

TEXT_ANSWER = {"role": "assistant", "content": "Sunny."}


def render_lines(*documents: Any) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def build_call_answer(**arguments: Any) -> Any:
    return {"tool_calls": [{"function": {"name": "get_weather", "arguments": json.dumps(arguments)}}]}


def test_import_traffic_makes_one_draft_of_equal_requests() -> None:
    result = import_traffic(render_lines(*(build() for build in FORMS.values())), "log.jsonl")
    assert (result.records, result.added, result.skipped) == (len(FORMS), 1, ())
    draft = TrafficDraft.objects.get()
    assert (draft.count, draft.answer_count, draft.line, draft.model) == (len(FORMS), 1, 1, "m-1")
    assert draft.title == "get_weather: How is the weather in Berlin?"


def test_import_traffic_expects_the_most_frequent_answer() -> None:
    import_traffic(render_lines(build_logged(answer=TEXT_ANSWER), build_logged(), build_logged()), "log.jsonl")
    (row,) = get_draft_page("open", 1).rows
    assert (row.calls, row.draft.answer_count) == ((("get_weather", '{"city": "Berlin"}'),), 2)


def build_nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"items": value}
    return value


@pytest.mark.parametrize("levels", [124, 600])
def test_import_traffic_skips_deeply_nested_records(levels: int) -> None:
    deep = build_nested(levels)
    record = build_logged()
    record["request"] |= {"tools": [{"name": "get_weather", "parameters": deep}]}
    langfuse = {"traceId": "t1", "input": MESSAGES, "output": [ANSWER]}
    langfuse["tool_definitions"] = json.dumps([{"name": "get_weather", "parameters": build_nested(levels + 3)}])
    answer = build_logged(answer=build_call_answer(city=build_nested(levels + 5)))
    result = import_traffic(render_lines(record, build_logged(), langfuse, answer), "log.jsonl")
    (skipped,) = result.skipped
    assert (result.added, skipped.count, skipped.lines) == (1, 3, [1, 3, 4])
    assert skipped.reason == "the record is nested deeper than 128 levels"


def test_import_traffic_of_an_answer_without_calls_expects_none() -> None:
    import_traffic(render_lines(build_logged(answer=TEXT_ANSWER)), "log.jsonl")
    assert parse_case(json.loads(TrafficDraft.objects.get().definition)).expect.no_call


def test_import_traffic_of_the_same_file_again_adds_nothing() -> None:
    data = render_lines(build_logged(), build_logged("And in Rome?"))
    assert import_traffic(data, "log.jsonl").added == 2
    reject_drafts([TrafficDraft.objects.values_list("pk", flat=True)[0]])
    result = import_traffic(data, "again.jsonl")
    assert (result.added, result.existing, TrafficDraft.objects.count()) == (0, 2, 2)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-" + "a1B2c3D4" * 4,
        "ghp_" + "x9Y8z7" * 6,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLXRlc3Q",
        "token-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLXRlc3Q",
        "eyJraWQiOi-IfiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLXRlc3Q",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----",
    ],
)
def test_import_traffic_masks_secrets_in_question_arguments_title(secret: str) -> None:
    question = f"My key is {secret}"
    result = import_traffic(render_lines(build_logged(question, build_call_answer(city=secret))), "log.jsonl")
    draft = TrafficDraft.objects.get()
    assert result.masked == 1
    assert draft.masked
    assert secret.split("\n")[-1] not in draft.title + str(parse_case(json.loads(draft.definition)))
    assert "[masked]" in draft.definition


def test_mask_secrets_reads_a_long_text_with_many_token_starts_once() -> None:
    text = "eyJ-" * 500_000  # took minutes when each start was compared with the rest of the text
    assert mask_secrets(text, Masker(())) == text


def test_import_traffic_masks_a_known_key_of_a_provider() -> None:
    make_provider(key_source="stored", key_encrypted=encrypt("plain-but-known-4711"))
    import_traffic(render_lines(build_logged("Use plain-but-known-4711 please")), "log.jsonl")
    assert "plain-but-known-4711" not in TrafficDraft.objects.get().definition


def test_import_traffic_compares_matcher_like_arguments_exactly() -> None:
    import_traffic(render_lines(build_logged(answer=build_call_answer(city={"$any_of": [1]}))), "log.jsonl")
    (call,) = parse_case(json.loads(TrafficDraft.objects.get().definition)).expect.calls
    assert call.arguments == {"city": {"$exact": {"$any_of": [1]}}}


def test_import_traffic_skips_arguments_that_are_no_json_numbers() -> None:
    call = {"function": {"name": "get_weather", "arguments": {"city": float("inf")}}}
    result = import_traffic(render_lines(build_logged(answer={"tool_calls": [call]})), "log.jsonl")
    assert (result.added, [group.reason for group in result.skipped]) == (
        0,
        ["a number of the record is NaN or infinite"],
    )


def test_import_traffic_counts_skipped_records_by_reason() -> None:
    unknown_tool = build_logged("Hm?", {"tool_calls": [{"function": {"name": "other", "arguments": "{}"}}]})
    result = import_traffic(b"{\n" + render_lines(unknown_tool, 7, build_logged()) + b"\xff\n", "log.jsonl")
    assert result.added == 1
    assert [(group.count, group.lines) for group in result.skipped] == [(3, [1, 3, 5]), (1, [2])]
    assert "There is no tool other" in result.skipped[1].reason
    assert result.sentence == "Records read: 5; drafts added: 1; records skipped: 4."


def test_accept_drafts_makes_private_cases_once() -> None:
    import_traffic(render_lines(build_logged(), build_logged("And in Rome?", ANSWER)), "log.jsonl")
    first, second = TrafficDraft.objects.values_list("pk", flat=True)
    assert accept_drafts([first], "Shop") == 1
    case = Case.objects.get()
    assert (case.set.name, case.set.public) == ("Shop", False)
    assert TrafficDraft.objects.get(pk=first).case == case
    assert accept_drafts(None) == 1
    assert accept_drafts([first, second]) == reject_drafts([first, second]) == 0
    assert get_draft_page("accepted", 9).counts == {"accepted": 2}


def test_import_traffic_of_ten_thousand_lines_takes_few_queries(django_assert_max_num_queries: Any) -> None:
    lines = render_lines(*(build_logged(f"Weather in place {number % 4000}?") for number in range(10_000)))
    with django_assert_max_num_queries(20):
        result = import_traffic(lines, "log.jsonl")
    assert (result.records, result.added) == (10_000, 4000)
