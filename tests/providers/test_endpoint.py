import pytest

from toolbench.providers.endpoint import Endpoint


@pytest.mark.parametrize(
    ("path", "url"),
    [("chat/completions", "http://here/v1/chat/completions"), ("/completion", "http://here/completion")],
)
@pytest.mark.parametrize("base", ["http://here", "http://here/", "http://here/v1"])
def test_build_url_adds_the_prefix_unless_path_begins_with_a_slash(base: str, path: str, url: str) -> None:
    assert Endpoint(base, "m").build_url(path) == url


def test_build_url_appends_the_query_and_fills_model_in_the_prefix() -> None:
    endpoint = Endpoint("https://here", "my gpt/4", "/openai/deployments/{model}", query="api-version=2024-10-21")
    assert endpoint.build_url("chat/completions") == (
        "https://here/openai/deployments/my%20gpt%2F4/chat/completions?api-version=2024-10-21"
    )
    assert endpoint.build_url("models?limit=1000").endswith("/models?limit=1000&api-version=2024-10-21")
