"""The text of the query bar: terms, words, and values that cannot be read."""

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.http import QueryDict
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_run, make_step, make_trial
from toolbench.lab.models import Step, Trial
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials
from toolbench.lab.results.trial_list.query_text import FIELDS, build_seen_condition, parse_query_text
from toolbench.lab.traces.search_text import update_search_texts

WRONG_CITY = [{"code": "wrong_argument", "path": "$.cities[2].city", "turn": 0}]


def find(search: str) -> set[str]:
    """Return the labels of the trials that a text finds."""
    trial_filter = TrialFilter.from_query(QueryDict(urlencode({"search": search})))
    assert trial_filter.ignored == ()
    return set(filter_trials(trial_filter).values_list("label", flat=True))


@pytest.fixture
def trials(db: None) -> None:
    """Make two trials: "old" passed a day ago; "new", of another model, failed just now with a wrong city."""
    now = timezone.now()
    old = make_config(make_run(), make_model("vendor/glm-4.7"), profile="creative")
    new = make_config(make_run(), make_model("vendor/qwen3"))
    make_trial(
        make_cell(old, "happy_path"),
        "pass",
        label="old",
        duration_ms=900,
        turns=2,
        input_tokens=90,
        output_tokens=10,
        started_at=now - timedelta(days=1),
    )
    failed = make_trial(
        make_cell(new, "weather"),
        "fail",
        label="new",
        duration_ms=9000,
        turns=5,
        retries=3,
        input_tokens=900,
        output_tokens=200,
        started_at=now - timedelta(minutes=5),
        cause="wrong_argument",
        causes=WRONG_CITY,
        wrong_paths=["$.days", "$.places[].name"],
        sentence="The city was lost.",
    )
    make_step(failed, kind=Step.Kind.TOOL, tool_name="get_forecast", ordinal=2)
    Trial.objects.update(text_stale=True)
    update_search_texts()


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("model:glm", {"old"}),
        ("model:vendor", {"old", "new"}),
        ('scenario:"weather"', {"new"}),
        ("profile:creat", {"old"}),
        ("outcome:fail", {"new"}),
        ("outcome:failed", {"new"}),
        ("outcome:Passed", {"old"}),
        ("cause:wrong_argument", {"new"}),
        ("seen:wrong_argument", {"new"}),
        ("path:$.cities[].city", {"new"}),
        ("path:cities[9].city", {"new"}),
        ("seen:wrong_type path:cities[].city", set()),
        ("path:$.days", {"new"}),
        ("path:places[3].name", {"new"}),
        ("path:$.day", set()),
        ("seen:wrong_argument path:$.days", set()),
        ("model:qwen path:days started>1h", {"new"}),
        ("model:qwen seen:wrong_argument path:cities[0].city started>1h", {"new"}),
        ("path:$.nothing path:$.days", set()),
        ("path:$.days path:$.nothing", set()),
        ("path:$.days path:places[3].name path:$.cities[].city", {"new"}),
        ("seen:wrong_type seen:wrong_argument", set()),
        ("seen:wrong_argument seen:wrong_argument", {"new"}),
        ("seen:wrong_argument path:$.days path:$.cities[].city", set()),
        ("tool:get_forecast", {"new"}),
        ("tool:get", set()),
        ("ms>1000", {"new"}),
        ("ms<=900", {"old"}),
        ("tokens>=1100", {"new"}),
        ("tokens:100", {"old"}),
        ("turns>2 turns<6", {"new"}),
        ("turns:2.5", set()),
        ("turns>4.5 turns<5.5", {"new"}),
        ("retries>-0.5", {"old", "new"}),
        ("retries:0", {"old"}),
        ("started>1h", {"new"}),
        ("started<1h", {"old"}),
        ("started>2000-01-01", {"old", "new"}),
        ("started<=2000-01-01", set()),
        ('"city was lost"', {"new"}),
        ("lost outcome:pass", set()),
        ("lost model:qwen", {"new"}),
        ("unknown:field", set()),
        ("", {"old", "new"}),
    ],
)
def test_query_text_finds_trials_that_match_all_terms(trials: None, search: str, found: set[str]) -> None:
    assert find(search) == found


def test_query_text_with_several_causes_finds_trials_with_all(trials: None) -> None:
    causes = [*WRONG_CITY, {"code": "missing_argument", "path": "$.cities[0].city", "turn": 1}]
    Trial.objects.filter(label="old").update(causes=causes)
    assert find("seen:wrong_argument seen:missing_argument") == {"old"}
    assert find("seen:missing_argument seen:wrong_argument path:cities[].city") == {"old"}
    assert find("seen:missing_argument seen:wrong_argument path:cities[].city path:$.days") == set()


def test_query_text_finds_tool_after_long_arguments_and_exactly(trials: None) -> None:
    old = Trial.objects.get(label="old")
    for ordinal, name in enumerate(["write_file"] * 12 + ["finish_task"]):
        make_step(old, kind=Step.Kind.TOOL, tool_name=name, ordinal=ordinal, bodies={"request": b"x" * 4_000})
    new = Trial.objects.get(label="new")
    make_step(new, kind=Step.Kind.TOOL, tool_name="lost_tool", ordinal=1, execution=new.execution + 1)
    Trial.objects.filter(pk=new.pk).update(sentence="Called neither finish_task nor lost_tool.")
    Trial.objects.update(text_stale=True)
    update_search_texts()
    assert [find(f"tool:{name}") for name in ("finish_task", "finish", "lost_tool")] == [{"old"}, set(), set()]


def test_query_text_started_date_means_the_whole_day(trials: None) -> None:
    day = Trial.objects.get(label="old").started_at
    assert day is not None
    assert "old" in find(f"started:{day:%Y-%m-%d}")
    assert find(f"started>{day:%Y-%m-%d}") | find(f"started<={day:%Y-%m-%d}") == {"old", "new"}


def test_query_text_finds_run_and_trial_by_number(trials: None) -> None:
    trial = Trial.objects.get(label="old")
    assert find(f"run:{trial.run_id}") == {"old"}
    assert find(f"trial:#{trial.pk}") == {"old"}


@pytest.mark.parametrize(
    "term",
    [
        *("ms>fast", "ms>nan", "ms>1e99", "tokens<", "cost:inf", "outcome:best", "run:x", "model>x", "cause<1"),
        *("started:9999-12-31", "started>9999-12-31", "started<=9999-12-31", "started<=0001-01-01"),
        *(
            "started:1h",
            "started>99999d",
            "started>2026-13-40",
            "started<yesterday",
            "started:9999-12-31",
            f"run:{'9' * 40}",
        ),
    ],
)
@pytest.mark.django_db
def test_query_text_names_and_ignores_unreadable_terms(term: str) -> None:
    trial_filter = TrialFilter.from_query(QueryDict(urlencode({"search": term})))
    list(filter_trials(trial_filter))
    assert trial_filter.ignored == ((term,) if term != "tokens<" else ())


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", ["%", "'", '"', "\\", "x" * 900, "💣", "$..[", "0", "-1", "1.5"])
@pytest.mark.django_db
def test_query_text_accepts_any_value_of_any_field(field: str, value: str) -> None:
    for operator in (":", ">", "<="):
        list(filter_trials(TrialFilter(search=f"{field}{operator}{value} x")))


def test_parse_query_text_separates_terms_and_words() -> None:
    query = parse_query_text('  lost model:glm "a b"  http://x ms>5 ')
    assert [term.text for term in query.terms] == ["model:glm", "ms>5"]
    assert query.words == 'lost "a b" http://x'


def test_build_seen_condition_can_use_the_index_of_causes(trials: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
    found = Trial.objects.filter(build_seen_condition("wrong_argument", "")).order_by()
    assert found.get().label == "new"
    assert "causes_at_any_index" in found.explain()


def test_build_seen_condition_of_a_path_can_use_both_indexes(trials: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
    plan = Trial.objects.filter(build_seen_condition("", "$.city[0]")).order_by().explain()
    assert "causes_at_any_index" in plan
    assert "wrong_arguments" in plan


def test_parse_query_text_reads_no_term_in_quotes() -> None:
    query = parse_query_text('"say model:glm now" run:5 "not ms>3"')
    assert [term.text for term in query.terms] == ["run:5"]
    assert query.words == '"say model:glm now" "not ms>3"'
