"""Labels and file names of configurations in a report."""

import pytest

from tests.factories import make_config, make_model, make_provider, make_run
from toolbench.lab.interchange.report.labels import build_config_labels, sanitise_file_name
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db


def list_labels(run: Run) -> list[str]:
    return [label.label for label in build_config_labels(tuple(run.configs.all())).values()]


def test_config_labels_contain_only_settings_that_vary() -> None:
    run = make_run()
    make_config(run)
    assert list_labels(run) == ["vendor/model-a"]
    make_config(run, profile="recommended")
    assert list_labels(run) == ["vendor/model-a:default", "vendor/model-a:recommended"]


def test_config_labels_name_a_single_profile_other_than_default() -> None:
    run = make_run()
    make_config(run, profile="recommended")
    assert list_labels(run) == ["vendor/model-a:recommended"]


def test_config_labels_keep_the_case_study_order_of_settings() -> None:
    run = make_run()
    make_config(run, profile="p", strategy="raw+content_tag_tool_call_fallback", method="native")
    make_config(run, profile="q", strategy="production!content_tag_tool_call_fallback", method="text_json")
    assert list_labels(run) == [
        "vendor/model-a:p:raw:fallback_on:native",
        "vendor/model-a:q:production:fallback_off:text_json",
    ]


def test_config_labels_name_streaming_if_it_varies() -> None:
    run = make_run()
    make_config(run, stream=False)
    make_config(run, stream=True)
    assert list_labels(run) == ["vendor/model-a:not_streamed", "vendor/model-a:streamed"]


def test_config_labels_name_the_provider_if_two_serve_the_model() -> None:
    run = make_run()
    make_config(run)
    make_config(run, make_model(provider=make_provider("Other")))
    assert list_labels(run) == ["vendor/model-a:Example", "vendor/model-a:Other"]


def test_config_labels_file_prefixes_are_unique() -> None:
    run = make_run()
    make_config(run, make_model("a/b"))
    make_config(run, make_model("a:b"))
    make_config(run, make_model("A:b"))
    prefixes = [label.file_prefix for label in build_config_labels(tuple(run.configs.all())).values()]
    assert prefixes == ["a__b", "a__b__2", "A__b__2__2"]


def test_sanitise_file_name_replaces_other_characters() -> None:
    assert sanitise_file_name("qwen/qwen3:nitro:default äö") == "qwen__qwen3__nitro__default__"
