"""Transport of the Python client: tokens and headers that HTTP does not allow."""

import pytest

from toolbench.client import ToolbenchClient, UnreachableError
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, json_reply


@pytest.mark.parametrize("token", ["tb_x\n", " tb_x ", "tb_x\r\n"])
def test_connect_ignores_white_space_around_the_token(token: str) -> None:
    with ScriptedServer([json_reply({})]) as server, ToolbenchClient(server.base_url, token) as client:
        client.transport.get("/runs")

        assert server.seen[0].headers["authorization"] == "Bearer tb_x"


@pytest.mark.parametrize("token", ["tb_ planted", "tb_\nplanted", "tb_planted\N{ZERO WIDTH SPACE}", "tb_planteð", "\n"])
def test_connect_refuses_a_token_with_impossible_characters(token: str) -> None:
    with pytest.raises(UnreachableError, match="Copy it again") as raised:
        ToolbenchClient("http://127.0.0.1:9", token)

    assert "plante" not in str(raised.value)


@pytest.mark.parametrize("key", ["planted\n", "planteð"])
def test_send_with_an_impossible_header_does_not_quote_it(key: str) -> None:
    with (
        ScriptedServer() as server,
        ToolbenchClient(server.base_url, "tb_x") as client,
        pytest.raises(UnreachableError, match="was not sent") as raised,
    ):
        client.transport.send("POST", "/runs", headers={"Idempotency-Key": key})

    assert "plante" not in str(raised.value)
    assert (server.seen, raised.value.__cause__) == ([], None)


@pytest.mark.parametrize(
    ("base_url", "shown"),
    [
        ("http://user:planted@127.0.0.1:9", "http://***@127.0.0.1:9/api/v1/ did not answer"),
        ("http://user:plan/ted@127.0.0.1:9", "http://***@127.0.0.1:9 is not a URL"),
        ("user:planted@127.0.0.1:9", "***@127.0.0.1:9"),
        ("http://user:plan\nted@127.0.0.1:9", "http://***@127.0.0.1:9 is not a URL"),
    ],
)
def test_transport_masks_the_login_of_the_address_in_errors(base_url: str, shown: str) -> None:
    with pytest.raises(UnreachableError) as raised, ToolbenchClient(base_url, "tb_x") as client:
        client.list_models()

    assert shown in str(raised.value)
    assert "plan" not in f"{raised.value} {raised.value.__cause__}"


def test_get_of_an_unchanged_answer_is_not_changed_by_the_caller() -> None:
    replies = [json_reply({"rows": [1]}, headers={"ETag": '"a"'}), ScriptedReply(304), ScriptedReply(304)]
    with ScriptedServer(replies) as server, ToolbenchClient(server.base_url, "tb_x") as client:
        for _ in range(2):
            client.transport.get("/matrix")["rows"].clear()

        assert client.transport.get("/matrix") == {"rows": [1]}
        assert server.seen[2].headers["if-none-match"] == '"a"'
