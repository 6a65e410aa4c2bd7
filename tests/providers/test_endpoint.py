import pytest

from toolbench.providers.endpoint import Endpoint


@pytest.mark.parametrize(
    ("path", "url"),
    [("chat/completions", "http://here/v1/chat/completions"), ("/completion", "http://here/completion")],
)
@pytest.mark.parametrize("base", ["http://here", "http://here/", "http://here/v1"])
def test_a_path_stands_below_the_prefix_and_one_with_a_slash_beside_it(base: str, path: str, url: str) -> None:
    assert Endpoint(base, "m").url(path) == url
