"""Histories of other programs: line-numbered faults, nothing half imported, counts by path."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.extreme_numbers import EXTREME_NUMBERS, render_with_literal
from tests.factories import make_provider
from tests.page_html import read_html
from toolbench.evals.statistics.shares import compute_exact_interval
from toolbench.lab.interchange.history.import_file import get_history_page, import_history
from toolbench.lab.interchange.history.lines import HistoryImportError
from toolbench.lab.models import History, HistoryTurn
from toolbench.lab.results.run.index import get_runs

pytestmark = pytest.mark.django_db
BROKEN = {"mode": "json_fallback", "error": "Unexpected end of JSON input", "snippet": '{"path": "小说/第'}


def turn(**fields: Any) -> dict[str, Any]:
    return {"model": "weak-1", "strategy": "tool_use", "called": True, "prompt_version": "3"} | fields


def lines(*turns: object) -> io.BytesIO:
    return io.BytesIO("\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns).encode())


def test_turns_are_counted_by_path_with_their_parse_errors() -> None:
    told = [turn(ok=True), turn(ok=True, retries=1), turn(called=False, ok=True)]
    fallback = {"strategy": "json_fallback", "probe": {"ok": False, "error": "no tool_calls"}}
    told += [turn(**fallback, parse_error=BROKEN, ok=False, at="2026-02-01T02:59:37+00:00"), turn(**fallback, ok=True)]
    history = import_history(lines(*told), "turns.jsonl")
    page = get_history_page(history.pk)
    paths = {line.path: line for line in page.by_path}
    assert (paths["tool_use"].turns, paths["tool_use"].parse_errors.k, paths["tool_use"].parse_errors.n) == (3, 0, 2)
    weak = paths["json_fallback"]
    assert (weak.parse_errors.k, weak.parse_errors.n, weak.succeeded.k, weak.probes_failed) == (1, 2, 1, 2)
    assert [(line.model, line.prompt_version, line.path) for line in page.by_model] == [
        ("weak-1", "3", "json_fallback"),
        ("weak-1", "3", "tool_use"),
    ]
    assert [(error.error, error.line, error.snippet) for error in page.errors] == [
        (BROKEN["error"], 4, BROKEN["snippet"])
    ]
    assert get_runs("imported") == ()


def test_turns_of_one_conversation_are_worth_fewer_independent_ones() -> None:
    told = [turn(conversation=f"c{talk}", ok=talk < 5) for talk in range(10) for _ in range(6)]
    (together,) = get_history_page(import_history(lines(*told), "talks.jsonl").pk).by_model
    (apart,) = get_history_page(import_history(lines(*(item | {"conversation": ""} for item in told)), "x").pk).by_model
    assert (together.conversations, apart.conversations) == (10, 0)
    assert (together.succeeded.k, together.succeeded.n) == (apart.succeeded.k, apart.succeeded.n) == (30, 60)
    assert (together.succeeded.method, apart.succeeded.method) == ("exact", "Wilson")
    assert (together.succeeded.low, together.succeeded.high) == pytest.approx(compute_exact_interval(5, 10))


def test_fields_may_stand_in_meta() -> None:
    import_history(lines({"text": "…", "meta": turn(parse_error=BROKEN)}), "turns.jsonl")
    assert HistoryTurn.objects.get().parse_error == BROKEN["error"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"model": ""}, "line 3: model: "),
        ({"called": "yes"}, "line 3: called: Input should be a valid boolean"),
        ({"strategy": "Tool Use"}, "line 3: strategy: "),
        ({"retries": -1}, "line 3: retries: "),
        ({"at": 7}, "line 3: at: "),
        ({"at": "2026-02-01T02:59:37"}, "line 3: at: "),
        ({"called": False, "parse_error": BROKEN}, "line 3: Value error, parse_error is set although called is false"),
        ({"conversation": "a\x00b"}, "line 3: conversation: "),
    ],
)
def test_a_fault_names_its_line_and_nothing_is_kept(bad: dict[str, Any], reason: str) -> None:
    given = io.BytesIO(lines(turn(), turn()).getvalue() + b"\n" + json.dumps(turn(**bad)).encode())
    with pytest.raises(HistoryImportError) as refused:
        import_history(given, "turns.jsonl")
    assert reason in str(refused.value)
    assert str(refused.value).endswith("Nothing was imported.")
    assert not History.objects.exists()


def test_every_fault_is_told_at_once_and_empty_lines_are_passed_over() -> None:
    with pytest.raises(HistoryImportError) as refused:
        import_history(io.BytesIO(b"{\n\n[]\n" + lines(turn()).getvalue()), "turns.jsonl")
    told = str(refused.value).splitlines()
    assert told[0].startswith("line 1: it is not JSON")
    assert told[1] == "line 3: it is not a JSON object"
    for empty in (b"", b"\n\n"):
        with pytest.raises(HistoryImportError, match="no turn"):
            import_history(io.BytesIO(empty), "turns.jsonl")


def test_the_same_file_is_imported_once() -> None:
    import_history(lines(turn()), "turns.jsonl")
    with pytest.raises(HistoryImportError, match="imported already"):
        import_history(lines(turn()), "again.jsonl")


def test_a_secret_in_a_snippet_is_masked_before_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "sk-planted-0123456789abcdef")
    make_provider(key_source="environment", key_env="PLANTED")
    error = BROKEN | {"snippet": "x" * 190 + "sk-planted-0123456789abcdef"}
    import_history(lines(turn(parse_error=error)), "turns.jsonl")
    assert HistoryTurn.objects.get().snippet == "x" * 190 + "*" * 10


def test_the_command_leads_to_a_page_labelled_imported(
    owner_client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "turns.jsonl"
    path.write_bytes(lines(turn(), turn(parse_error=BROKEN)).getvalue())
    call_command("import_history", path)
    address = capsys.readouterr().out.split()[-1]
    text = read_html(owner_client.get(address))
    assert "<b>Imported.</b>" in text
    assert "1/2" in text
    assert address in read_html(owner_client.get("/imported/"))
    assert owner_client.get("/imported/histories/77/").status_code == 404
    with pytest.raises(CommandError, match="imported already"):
        call_command("import_history", path)


@pytest.mark.parametrize("field", ["turn", "step", "retries"])
@pytest.mark.parametrize("literal", EXTREME_NUMBERS)
def test_history_with_an_extreme_number_is_bounded_or_refused(field: str, literal: str) -> None:
    line = render_with_literal(turn(**{field: 0}), (field,), literal)
    given = lines(turn()).getvalue() + b"\n" + line.encode()
    if literal not in ("0", "1e9", *(["null"] if field != "retries" else [])):
        with pytest.raises(HistoryImportError, match=r"^line 2: "):
            import_history(io.BytesIO(given), "turns.jsonl")
        assert not History.objects.exists()
        return
    history = import_history(io.BytesIO(given), "turns.jsonl")
    assert getattr(history.turns.get(line=2), field) in (None, 0, 10**9)
    assert get_history_page(history.pk).by_model


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_history_with_an_implausible_date_is_refused(text: str) -> None:
    with pytest.raises(HistoryImportError, match=r"line 1: at: .*is not a time between 1970 and 2200"):
        import_history(lines(turn(at=text)), "turns.jsonl")
