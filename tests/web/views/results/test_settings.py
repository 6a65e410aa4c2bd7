"""Exported settings of a configuration: every file, without secrets."""

import pytest
from django.test import Client

from tests.factories import make_config, make_model, make_provider, make_run
from tests.page_html import read_html
from toolbench.evals.decisions.sdk_export import FORMAT_BY_FILE
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import Provider

pytestmark = pytest.mark.django_db


def test_settings_page_exports_every_file_without_secrets(owner_client: Client) -> None:
    provider = make_provider(
        base_url="https://me:hunter2@example.test/api",
        key_source=Provider.KeySource.STORED,
        key_encrypted=encrypt("sk-very-secret"),
        header_names=["X-Team"],
        headers_encrypted=encrypt('{"X-Team": "team-secret"}'),
    )
    config = make_config(make_run(), make_model(provider=provider))
    texts = [read_html(owner_client.get(f"/decide/settings/{config.pk}/"))]
    texts += [read_html(owner_client.get(f"/decide/settings/{config.pk}/{file}")) for file in FORMAT_BY_FILE]
    assert len(texts) == 6
    for text in texts:
        assert "vendor/model-a" in text
        assert not [secret for secret in ("sk-very-secret", "hunter2", "team-secret") if secret in text]
    assert "the headers X-Team; add their values" in texts[0]
    assert "<button" not in texts[0].partition("<main")[2].partition("</main>")[0], "it could not copy without a script"


def test_settings_files_name_deployment_and_key_header(owner_client: Client) -> None:
    prefix = "/openai/deployments/{model}"
    provider = make_provider(base_url="https://example.test", api_prefix=prefix, key_header="api-key")
    config = make_config(make_run(), make_model("a/b", provider=provider))
    texts = {file: owner_client.get(f"/decide/settings/{config.pk}/{file}").content.decode() for file in FORMAT_BY_FILE}
    for text in texts.values():
        assert "{model}" not in text
        assert "takes the key in the header api-key" in text
    for file in ("openai.py", "litellm.yaml"):
        assert "https://example.test/openai/deployments/a%2Fb" in texts[file]
    assert "key_header='api-key'" in texts["python.py"]


def test_settings_page_reports_settings_of_other_engine_version(owner_client: Client) -> None:
    config = make_config(make_run(), layers=[["run", {"no_such_key": 1}]])
    text = read_html(owner_client.get(f"/decide/settings/{config.pk}/"))
    assert "This version of the engine cannot use these settings" in text


@pytest.mark.parametrize("path", ["999999/", "999999/openai.py"])
def test_settings_page_of_unknown_configuration_is_404(owner_client: Client, path: str) -> None:
    assert owner_client.get(f"/decide/settings/{path}").status_code == 404
