"""What a configuration is called in a report."""

import pytest

from tests.factories import make_config, make_model, make_provider, make_run
from toolbench.lab.interchange.report.labels import build_config_labels, sanitise_file_name
from toolbench.lab.models import Run

pytestmark = pytest.mark.django_db


def labels(run: Run) -> list[str]:
    return [label.label for label in build_config_labels(tuple(run.configs.all())).values()]


def test_a_label_holds_only_what_varies() -> None:
    run = make_run()
    make_config(run)
    assert labels(run) == ["vendor/model-a"]
    make_config(run, profile="recommended")
    assert labels(run) == ["vendor/model-a:default", "vendor/model-a:recommended"]


def test_one_profile_that_is_not_the_default_is_named() -> None:
    run = make_run()
    make_config(run, profile="recommended")
    assert labels(run) == ["vendor/model-a:recommended"]


def test_dimensions_stand_in_the_case_studys_order_and_ours_after_them() -> None:
    run = make_run()
    make_config(run, profile="p", strategy="raw+content_tag_tool_call_fallback", method="native")
    make_config(run, profile="q", strategy="production!content_tag_tool_call_fallback", method="text_json")
    assert labels(run) == [
        "vendor/model-a:p:raw:fallback_on:native",
        "vendor/model-a:q:production:fallback_off:text_json",
    ]


def test_the_provider_is_named_where_two_have_the_same_model() -> None:
    run = make_run()
    make_config(run)
    make_config(run, make_model(provider=make_provider("Other")))
    assert labels(run) == ["vendor/model-a:Example", "vendor/model-a:Other"]


def test_files_are_unique_also_where_labels_differ_in_signs_only() -> None:
    run = make_run()
    make_config(run, make_model("a/b"))
    make_config(run, make_model("a:b"))
    make_config(run, make_model("A:b"))
    files = [label.file_prefix for label in build_config_labels(tuple(run.configs.all())).values()]
    assert files == ["a__b", "a__b__2", "A__b__2__2"]


def test_other_signs_become_two_underscores() -> None:
    assert sanitise_file_name("qwen/qwen3:nitro:default äö") == "qwen__qwen3__nitro__default__"
