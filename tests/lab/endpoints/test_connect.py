from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connections, transaction

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, recompute_stale_cells
from tests.lab.scripted_runs import launch_run
from tests.locks import is_other_connection_blocked
from tests.wait import wait_until
from toolbench.engine.policy.settings import resolve_policy
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.credentials.keys import read_endpoint_headers, read_endpoint_key
from toolbench.lab.endpoints import connect, offered_models, setup_pages
from toolbench.lab.endpoints.connect import ConnectionSettings, ConnectionSettingsError
from toolbench.lab.models import Cell, Model, Provider
from toolbench.lab.worker.local_servers import register_local_server
from toolbench.lab.worker.trial_plan import load_provider_access
from toolbench.providers.scripted_server import ConnectionEnd, ScriptedReply, ScriptedServer, json_reply

pytestmark = pytest.mark.django_db(transaction=True)
CONNECTION = ConnectionSettings("Mine", "https://api.example.test", key="sk-1")


def test_connect_provider_stores_key_encrypted() -> None:
    provider = connect.connect_provider(CONNECTION)
    provider.refresh_from_db()
    assert provider.key_source == Provider.KeySource.STORED
    assert b"sk-1" not in bytes(provider.key_encrypted or b"")
    assert read_endpoint_key(provider) == "sk-1"


def test_edit_provider_blank_key_keeps_stored_one(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = connect.connect_provider(CONNECTION)
    edited = connect.edit_provider(provider.pk, ConnectionSettings("Renamed", CONNECTION.base_url, concurrency=3))
    assert (edited.name, edited.concurrency, read_endpoint_key(edited)) == ("Renamed", 3, "sk-1")
    monkeypatch.setenv("ITS_KEY", "sk-env")
    edited = connect.edit_provider(provider.pk, ConnectionSettings("Renamed", CONNECTION.base_url, key_env="ITS_KEY"))
    assert (edited.key_encrypted, read_endpoint_key(edited)) == (None, "sk-env")


def test_connect_provider_of_a_name_taken_meanwhile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    connect.connect_provider(CONNECTION)
    monkeypatch.setattr(connect, "_find_name_error", lambda name, provider_id: "")

    with pytest.raises(ConnectionSettingsError, match="There is a provider named Mine already: enter") as refused:
        connect.connect_provider(replace(CONNECTION, key="sk-2"))

    assert list(refused.value.errors) == ["name"]


@pytest.mark.parametrize("other_url", ["https://evil.test", "http://api.example.test", "https://api.example.test:8443"])
def test_edit_provider_other_host_needs_key_again(other_url: str) -> None:
    provider = connect.connect_provider(CONNECTION)
    with pytest.raises(ConnectionSettingsError, match="The address has another host: enter the key for it") as refused:
        connect.edit_provider(provider.pk, ConnectionSettings("Mine", other_url))
    assert list(refused.value.errors) == ["key"]
    provider.refresh_from_db()
    assert (provider.base_url, read_endpoint_key(provider)) == (CONNECTION.base_url, "sk-1")
    assert (
        read_endpoint_key(connect.edit_provider(provider.pk, ConnectionSettings("Mine", other_url, key="sk-2")))
        == "sk-2"
    )


def test_edit_provider_other_path_of_host_keeps_key() -> None:
    provider = connect.connect_provider(CONNECTION)
    assert (
        read_endpoint_key(
            connect.edit_provider(provider.pk, ConnectionSettings("Mine", "https://API.example.test:443/api"))
        )
        == "sk-1"
    )


def test_edit_provider_with_remove_key_deletes_key() -> None:
    provider = connect.connect_provider(CONNECTION)
    edited = connect.edit_provider(provider.pk, ConnectionSettings("Mine", "https://other.test", remove_key=True))
    assert (edited.key_source, edited.key_encrypted, read_endpoint_key(edited)) == (Provider.KeySource.NONE, None, "")


def test_connect_provider_encrypts_header_values_not_names() -> None:
    provider = connect.connect_provider(
        ConnectionSettings("S", "https://x.test", headers={"X-Auth": "planted", "X-Title": "Mine"})
    )
    provider.refresh_from_db()
    assert provider.header_names == ["X-Auth", "X-Title"]
    assert b"planted" not in bytes(provider.headers_encrypted or b"")
    assert load_provider_access(provider).endpoint.headers == {"X-Auth": "planted", "X-Title": "Mine"}


def test_edit_provider_keeps_replaces_and_removes_headers_by_name() -> None:
    provider = connect.connect_provider(
        ConnectionSettings("S", "https://x.test", headers={"X-Auth": "a", "X-Title": "Mine"})
    )
    kept = connect.edit_provider(provider.pk, ConnectionSettings("S", "https://x.test"))
    assert read_endpoint_headers(kept) == {"X-Auth": "a", "X-Title": "Mine"}
    edited = connect.edit_provider(
        provider.pk, ConnectionSettings("S", "https://x.test", headers={"x-auth": "b"}, remove_headers=("X-Title",))
    )
    assert (edited.header_names, read_endpoint_headers(edited)) == (["x-auth"], {"x-auth": "b"})
    emptied = connect.edit_provider(provider.pk, ConnectionSettings("S", "https://x.test", remove_headers=("x-auth",)))
    assert (emptied.header_names, emptied.headers_encrypted) == ([], None)


def test_edit_provider_other_host_needs_secret_headers_again() -> None:
    provider = connect.connect_provider(
        ConnectionSettings("S", "https://x.test", headers={"X-Auth": "a", "X-Title": "Mine"})
    )
    with pytest.raises(ConnectionSettingsError, match="enter X-Auth for it") as refused:
        connect.edit_provider(provider.pk, ConnectionSettings("S", "https://evil.test"))
    assert list(refused.value.errors) == ["headers"]
    moved = connect.edit_provider(provider.pk, ConnectionSettings("S", "https://other.test", headers={"X-Auth": "b"}))
    assert read_endpoint_headers(moved) == {"X-Auth": "b", "X-Title": "Mine"}


def test_edit_provider_unreadable_headers_need_all_entered_or_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    provider = connect.connect_provider(
        ConnectionSettings("S", "https://x.test", headers={"X-Auth": "a", "X-Title": "Mine"})
    )
    monkeypatch.setattr(settings, "KEY_FILE", tmp_path / "another.key")
    with pytest.raises(ConnectionSettingsError, match="Enter the extra headers of S again"):
        connect.edit_provider(provider.pk, ConnectionSettings("S", "https://x.test", headers={"X-Title": "New"}))
    edited = connect.edit_provider(
        provider.pk, ConnectionSettings("S", "https://x.test", headers={"X-Title": "New"}, remove_headers=("X-Auth",))
    )
    assert read_endpoint_headers(edited) == {"X-Title": "New"}


def test_edit_provider_clears_paused_reason() -> None:
    provider = make_provider(paused_reason="no key")
    assert connect.edit_provider(provider.pk, ConnectionSettings("Example", "http://x", key="k")).paused_reason == ""


@pytest.mark.parametrize(
    ("changes", "stale"),
    [({"base_url": "http://127.0.0.1:8000"}, True), ({"template": "openai"}, True), ({"concurrency": 3}, False)],
)
def test_edit_provider_marks_cells_whose_price_may_change(changes: dict[str, Any], stale: bool) -> None:
    cell = make_cell(make_config(make_run()))
    make_cell(make_config(make_run(), price={"input": 1.0, "output": 1.0}))
    recompute_stale_cells()
    connect.edit_provider(
        make_provider().pk, replace(ConnectionSettings("Example", "https://example.test/api"), **changes)
    )
    assert list(Cell.objects.filter(stale=True)) == ([cell] if stale else [])


def test_edit_provider_deleted_meanwhile_stays_deleted() -> None:
    provider = connect.connect_provider(CONNECTION)

    def edit() -> bool:
        try:
            connect.edit_provider(provider.pk, CONNECTION)
        except Provider.DoesNotExist:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            Provider.objects.filter(pk=provider.pk).delete()
            is_saved = pool.submit(edit)
            wait_until(is_other_connection_blocked)
        assert not is_saved.result(timeout=30)
    assert not Provider.objects.exists()


@pytest.mark.parametrize(
    ("connection", "field"),
    [
        (ConnectionSettings("", "http://x"), "name"),
        (ConnectionSettings("Taken", "http://x"), "name"),
        (ConnectionSettings("A", "ftp://x"), "base_url"),
        (ConnectionSettings("A", "nonsense"), "base_url"),
        (ConnectionSettings("", ""), "base_url"),
        (ConnectionSettings("A", "http://[::bad"), "base_url"),
        (ConnectionSettings("A", "https://user:planted@x/v1"), "base_url"),
        (ConnectionSettings("A", "https://x/v1?api-key=planted"), "base_url"),
        (ConnectionSettings("A", "https://x/v1#planted"), "base_url"),
        (ConnectionSettings("A", "https://x/sk-planted-key/v1"), "base_url"),
        (ConnectionSettings("A", "https://x/s%6B-planted-key/v1"), "base_url"),
        (ConnectionSettings("A", "https://x/v1/0planted0", key="0planted0"), "base_url"),
        (ConnectionSettings("A", "https://x/v1/0planted0", key_env="AN_UNUSUAL_NAME"), "base_url"),
        (ConnectionSettings("A", "https://x/v1/0planted0", headers={"X-Auth": "Bearer 0planted0"}), "base_url"),
        (ConnectionSettings("A", "https://0planted0.x/v1", key="0Planted0"), "base_url"),
        (ConnectionSettings("A", "https://x", api_prefix="/0planted0/v1", key="0planted0"), "api_prefix"),
        (ConnectionSettings("A", "https://x/v1/****************"), "base_url"),
        (ConnectionSettings("A", "https://x:port"), "base_url"),
        (ConnectionSettings("A", "http://x", api_prefix="/v1?api-key=planted"), "api_prefix"),
        (ConnectionSettings("A", "http://x", template="none-such"), "template"),
        (ConnectionSettings("A", "http://x", option_defaults={"tools": []}), "option_defaults"),
        (ConnectionSettings("A", "http://x", headers={"a": 1}), "headers"),
        (ConnectionSettings("A", "http://x", max_attempts=0), "max_attempts"),
        (ConnectionSettings("A", "http://x", concurrency=0), "concurrency"),
    ],
)
def test_connect_provider_invalid_setting_is_refused_by_field(
    connection: ConnectionSettings, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AN_UNUSUAL_NAME", "0planted0")
    make_provider("Taken")
    with pytest.raises(ConnectionSettingsError) as refused:
        connect.connect_provider(connection)
    assert list(refused.value.errors) == [field]
    assert "planted" not in str(refused.value)


def test_connect_provider_fills_in_builtin_provider() -> None:
    load_builtin_data()
    provider = connect.connect_provider(
        ConnectionSettings("OpenRouter", "https://openrouter.ai/api", template="openrouter", key="sk-or")
    )
    assert provider.models.count() == 17
    assert read_endpoint_key(provider) == "sk-or"
    with pytest.raises(ConnectionSettingsError):
        connect.connect_provider(
            ConnectionSettings("OpenRouter", "https://openrouter.ai/api", template="openrouter", key="other")
        )


def test_connect_provider_builtin_provider_keeps_its_host() -> None:
    load_builtin_data()
    with pytest.raises(ConnectionSettingsError) as refused:
        connect.connect_provider(
            ConnectionSettings("OpenRouter", "http://127.0.0.1:8799", template="openrouter", key="sk-own")
        )
    assert list(refused.value.errors) == ["name"]
    provider = Provider.objects.get(name="OpenRouter")
    assert (provider.base_url, provider.key_encrypted) == ("https://openrouter.ai/api", None)


def test_list_detected_keys_names_variable_without_value(monkeypatch: pytest.MonkeyPatch) -> None:
    for template in setup_pages.list_templates():
        monkeypatch.delenv(template.key_env or "NO_SUCH_VARIABLE", raising=False)
    monkeypatch.setenv("GROQ_API_KEY", "gsk-secret")
    (found,) = setup_pages.list_detected_keys(Provider.objects.all())
    assert (found.variable, found.provider_id) == ("GROQ_API_KEY", None)
    assert "gsk-secret" not in repr(found)
    provider = make_provider("Groq", key_env="GROQ_API_KEY")
    assert setup_pages.list_detected_keys(Provider.objects.all())[0].provider_id == provider.pk


def test_list_provider_models_asks_provider_with_key() -> None:
    with ScriptedServer([json_reply({"data": [{"id": "b"}, {"id": "a"}]})]) as scripted:
        provider = connect.connect_provider(ConnectionSettings("S", scripted.base_url, key="sk-1"))
        assert offered_models.list_provider_models(provider.pk) == ("b", "a")
        assert scripted.seen[0].headers["authorization"] == "Bearer sk-1"


def test_list_provider_models_without_answer_or_key_raises() -> None:
    provider = connect.connect_provider(ConnectionSettings("S", "http://127.0.0.1:9"))
    with pytest.raises(offered_models.ModelListError):
        offered_models.list_provider_models(provider.pk)
    missing = make_provider("Env", key_source="environment", key_env="NOT_SET_ANYWHERE")
    with pytest.raises(offered_models.ModelListError, match="NOT_SET_ANYWHERE"):
        offered_models.list_provider_models(missing.pk)


def test_list_provider_models_endless_answer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered_models, "LIST_TIMEOUT_SECONDS", 0.2)
    with ScriptedServer([ScriptedReply(body=[b"["], declared=9, ending=ConnectionEnd.HANG)]) as scripted:
        provider = connect.connect_provider(ConnectionSettings("S", scripted.base_url))
        with pytest.raises(offered_models.ModelListError, match="no list of models within"):
            offered_models.list_provider_models(provider.pk)


def test_add_models_skips_known_models_and_sets_workarounds() -> None:
    provider = make_provider(template="openrouter")
    assert offered_models.add_models(provider.pk, ["deepseek/deepseek-v3.2:nitro", " x ", "x", ""]) == 2
    assert offered_models.add_models(provider.pk, ["x"]) == 0
    model = Model.objects.get(name__startswith="deepseek")
    assert (model.canonical, model.mixed_upstreams) == ("deepseek/deepseek-v3.2", True)
    assert model.workarounds == ["deepseek_openrouter_compat"]


def test_delete_provider_ends_queued_trials_and_keeps_run() -> None:
    model = make_model()
    run = launch_run(model)
    connect.delete_provider(model.provider_id)
    run.refresh_from_db()
    assert run.state == "finished"
    assert run.trials.filter(outcome="infra", provider=None).count() == run.trial_count
    assert run.configs.get().provider_name == "Example"


@pytest.mark.parametrize(
    ("template", "constraint"),
    [
        ("vllm", "structured_outputs"),
        ("anthropic", "output_config"),
        ("openai", "strict"),
        ("llama-cpp", "gbnf"),
        ("ollama", "response_format"),
        ("gemini", "plain_schema"),
    ],
)
def test_add_models_sets_constraint_of_provider_template(template: str, constraint: str) -> None:
    provider = make_provider(template, template=template)
    offered_models.add_models(provider.pk, ["m"])
    config = launch_run(provider.models.get(), methods=("constrained",), trials=1).configs.get()

    policy = resolve_policy((name, patch) for name, patch in config.layers).policy
    assert policy.constraint == constraint


def test_second_simulated_provider_copies_personas_and_stays_simulated() -> None:
    load_builtin_data()
    register_local_server("simulated", {"url": "http://127.0.0.1:5555", "key": "k"})
    host = connect.connect_provider(ConnectionSettings("Cheap host", "", template="simulated"))
    assert (host.kind, host.service, host.base_url) == (Provider.Kind.SIMULATED, "simulated", "")
    assert offered_models.add_models(host.pk, ["tagged-calls", "gpt-5", "messages/perfect"]) == 1
    persona, first = host.models.get(), Model.objects.get(name="tagged-calls", provider__name="Simulated")
    alike = ("canonical", "true_rates", "workarounds", "note")
    assert [getattr(persona, field) for field in alike] == [getattr(first, field) for field in alike]
    before = Model.objects.count()
    load_builtin_data()
    assert Model.objects.count() == before
    for connection in (CONNECTION, replace(CONNECTION, name="Cheap host")):
        with pytest.raises(ConnectionSettingsError, match="cannot change between simulated and real models"):
            connect.edit_provider(host.pk, connection)
    with pytest.raises(ConnectionSettingsError, match="Simulated models have other names in another API"):
        connect.edit_provider(host.pk, ConnectionSettings("Cheap host", "", template="simulated", wire="anthropic"))
    for host_name in ("127.0.0.1", "localhost", "[::1]"):
        with pytest.raises(ConnectionSettingsError, match="choose the template Simulated"):
            connect.connect_provider(ConnectionSettings("Real?", f"http://{host_name}:5555/v1"))
    with pytest.raises(ConnectionSettingsError, match="There is a provider named Simulated already"):
        connect.connect_provider(ConnectionSettings("Simulated", "", template="simulated"))


@pytest.mark.parametrize(
    "address", ["u:0planted0@x.test/v1", "x.test?k=0planted0", "x.test#0planted0", "x.test/sk-0planted0"]
)
def test_connect_provider_key_in_address_is_refused_with_advice(address: str) -> None:
    with pytest.raises(
        ConnectionSettingsError, match="put the key into the key field, its variable or an extra header"
    ) as refused:
        connect.connect_provider(ConnectionSettings("A", f"https://{address}"))
    assert "0planted0" not in str(refused.value)
    assert not Provider.objects.exists()


def test_edit_provider_stored_key_in_address_is_refused() -> None:
    provider = connect.connect_provider(replace(CONNECTION, key="0planted0"))
    with pytest.raises(ConnectionSettingsError, match="a probable key in its path"):
        connect.edit_provider(provider.pk, replace(CONNECTION, key="", base_url=f"{CONNECTION.base_url}/0planted0"))
