"""Histories of other programs: counts by path, and faults by line that prevent the import."""

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
from toolbench.lab.interchange.history import import_file
from toolbench.lab.interchange.history.import_file import get_history_page, import_history
from toolbench.lab.interchange.history.lines import HistoryImportError, HistoryLine, parse_lines
from toolbench.lab.models import History, HistoryTurn
from toolbench.lab.results.run.index import get_runs

pytestmark = pytest.mark.django_db
BROKEN = {"mode": "json_fallback", "error": "Unexpected end of JSON input", "snippet": '{"path": "小说/第'}


def make_turn(**fields: Any) -> dict[str, Any]:
    return {"model": "weak-1", "strategy": "tool_use", "called": True, "prompt_version": "3"} | fields


def make_file(*turns: object) -> io.BytesIO:
    return io.BytesIO("\n".join(json.dumps(make_turn, ensure_ascii=False) for make_turn in turns).encode())


def test_history_page_counts_turns_and_parse_errors_by_path() -> None:
    turns = [make_turn(ok=True), make_turn(ok=True, retries=1), make_turn(called=False, ok=True)]
    fallback = {"strategy": "json_fallback", "probe": {"ok": False, "error": "no tool_calls"}}
    turns += [
        make_turn(**fallback, parse_error=BROKEN, ok=False, at="2026-02-01T02:59:37+00:00"),
        make_turn(**fallback, ok=True),
    ]
    history = import_history(make_file(*turns), "turns.jsonl")
    page = get_history_page(history.pk)
    paths = {line.path: line for line in page.by_path}
    assert (paths["tool_use"].turns, paths["tool_use"].parse_errors.k, paths["tool_use"].parse_errors.n) == (3, 0, 2)
    fallback_row = paths["json_fallback"]
    assert (
        fallback_row.parse_errors.k,
        fallback_row.parse_errors.n,
        fallback_row.succeeded.k,
        fallback_row.probes_failed,
    ) == (1, 2, 1, 2)
    assert [(line.model, line.prompt_version, line.path) for line in page.by_model] == [
        ("weak-1", "3", "json_fallback"),
        ("weak-1", "3", "tool_use"),
    ]
    assert [(error.error, error.line, error.snippet) for error in page.errors] == [
        (BROKEN["error"], 4, BROKEN["snippet"])
    ]
    assert get_runs("imported") == ()


def test_history_page_clusters_turns_of_one_conversation() -> None:
    turns = [
        make_turn(conversation=f"c{conversation}", ok=conversation < 5) for conversation in range(10) for _ in range(6)
    ]
    (clustered,) = get_history_page(import_history(make_file(*turns), "talks.jsonl").pk).by_model
    (independent,) = get_history_page(
        import_history(make_file(*(item | {"conversation": ""} for item in turns)), "x").pk
    ).by_model
    assert (clustered.conversations, independent.conversations) == (10, 0)
    assert (
        (clustered.succeeded.k, clustered.succeeded.n) == (independent.succeeded.k, independent.succeeded.n) == (30, 60)
    )
    assert (clustered.succeeded.method, independent.succeeded.method) == ("exact", "Wilson")
    assert (clustered.succeeded.low, clustered.succeeded.high) == pytest.approx(compute_exact_interval(5, 10))


def test_import_history_of_a_file_that_is_imported_meanwhile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    file = make_file(make_turn())

    def import_first(lines: list[bytes]) -> list[tuple[int, HistoryLine]]:
        with monkeypatch.context() as patched:
            patched.setattr(import_file, "parse_lines", parse_lines)
            import_history(io.BytesIO(file.getvalue()), "first.jsonl")
        return parse_lines(lines)

    monkeypatch.setattr(import_file, "parse_lines", import_first)
    with pytest.raises(HistoryImportError, match="The same file was imported already"):
        import_history(file, "second.jsonl")
    assert [history.name for history in History.objects.all()] == ["first.jsonl"]


def test_import_history_reads_fields_from_meta() -> None:
    import_history(make_file({"text": "…", "meta": make_turn(parse_error=BROKEN)}), "turns.jsonl")
    assert HistoryTurn.objects.get().parse_error == BROKEN["error"]


@pytest.mark.parametrize(
    ("fields", "reason"),
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
def test_import_history_with_a_fault_names_its_line_and_stores_nothing(fields: dict[str, Any], reason: str) -> None:
    file = io.BytesIO(make_file(make_turn(), make_turn()).getvalue() + b"\n" + json.dumps(make_turn(**fields)).encode())
    with pytest.raises(HistoryImportError) as raised:
        import_history(file, "turns.jsonl")
    assert reason in str(raised.value)
    assert str(raised.value).endswith("Nothing was imported.")
    assert not History.objects.exists()


def test_import_history_names_every_fault_and_skips_empty_lines() -> None:
    with pytest.raises(HistoryImportError) as raised:
        import_history(io.BytesIO(b"{\n\n[]\n" + make_file(make_turn()).getvalue()), "turns.jsonl")
    messages = str(raised.value).splitlines()
    assert messages[0].startswith("line 1: it is not JSON")
    assert messages[1] == "line 3: it is not a JSON object"
    for empty in (b"", b"\n\n"):
        with pytest.raises(HistoryImportError, match="no turn"):
            import_history(io.BytesIO(empty), "turns.jsonl")


def test_import_history_refuses_a_file_imported_before() -> None:
    import_history(make_file(make_turn()), "turns.jsonl")
    with pytest.raises(HistoryImportError, match="imported already"):
        import_history(make_file(make_turn()), "again.jsonl")


def test_import_history_masks_a_key_before_truncating_the_snippet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "sk-planted-0123456789abcdef")
    make_provider(key_source="environment", key_env="PLANTED")
    error = BROKEN | {"snippet": "x" * 190 + "sk-planted-0123456789abcdef"}
    import_history(make_file(make_turn(parse_error=error)), "turns.jsonl")
    assert HistoryTurn.objects.get().snippet == "x" * 190 + "*" * 10


def test_import_history_command_prints_the_page_of_the_history(
    owner_client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "turns.jsonl"
    path.write_bytes(make_file(make_turn(), make_turn(parse_error=BROKEN)).getvalue())
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
def test_import_history_bounds_or_refuses_extreme_numbers(field: str, literal: str) -> None:
    line = render_with_literal(make_turn(**{field: 0}), (field,), literal)
    content = make_file(make_turn()).getvalue() + b"\n" + line.encode()
    if literal not in ("0", "1e9", *(["null"] if field != "retries" else [])):
        with pytest.raises(HistoryImportError, match=r"^line 2: "):
            import_history(io.BytesIO(content), "turns.jsonl")
        assert not History.objects.exists()
        return
    history = import_history(io.BytesIO(content), "turns.jsonl")
    assert getattr(history.turns.get(line=2), field) in (None, 0, 10**9)
    assert get_history_page(history.pk).by_model


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_import_history_refuses_implausible_dates(text: str) -> None:
    with pytest.raises(HistoryImportError, match=r"line 1: at: .*is not a time between 1970 and 2200"):
        import_history(make_file(make_turn(at=text)), "turns.jsonl")
