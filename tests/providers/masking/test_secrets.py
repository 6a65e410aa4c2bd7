import json
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable
from threading import Thread

import pytest

from toolbench.providers.masking import secrets
from toolbench.providers.masking.secrets import Masker, build_masker

KEY = 'sk-or/v1+"quoted"\\slash-é'


@pytest.mark.parametrize(
    "text",
    [
        f"plain {KEY} text",
        json.dumps({"key": KEY}, ensure_ascii=False),
        json.dumps({"key": KEY}, ensure_ascii=False).replace("/", "\\/"),
        json.dumps({"inner": json.dumps({"key": KEY}, ensure_ascii=False)}, ensure_ascii=False),
        json.dumps({"key": KEY}),
        json.dumps({"inner": json.dumps({"key": KEY})}),
        "".join(f"\\u{ord(character):04X}" for character in KEY),
    ],
)
def test_mask_text_masks_every_spelling_and_keeps_the_length(text: str) -> None:
    masked = build_masker(KEY, ()).mask_text(text)
    assert "sk-or" not in masked
    assert "slash" not in masked
    assert "\\u00" not in masked
    assert len(masked.encode()) == len(text.encode())


def test_mask_of_a_body_without_secret_returns_the_same_object() -> None:
    body = b'{"text": "na\\u00efve \\/ path"}'
    assert build_masker("sk-secret-1234", ()).mask(body) is body


def test_masker_of_a_short_key_masks_only_its_header() -> None:
    masker = build_masker("ollama", ())
    assert masker.mask(b"ollama/gemma") == b"ollama/gemma"
    assert masker.mask_headers({"authorization": "Bearer ollama"}) == {"authorization": "*" * 13}


def test_masker_masks_values_of_secret_headers_everywhere() -> None:
    headers = {"x-api-key": "first-secret", "cookie": "second-secret", "x-title": "sent with first-secret"}
    masker = build_masker("", headers.items())
    assert masker.mask_headers(headers) == {
        "x-api-key": "*" * 12,
        "cookie": "*" * 13,
        "x-title": "sent with " + "*" * 12,
    }
    assert masker.mask(b"second-secret") == b"*" * 13


@pytest.mark.parametrize(
    "name",
    ["ocp-apim-subscription-key", "x-functions-key", "x-access-key", "x-auth", "x-credential", "api_key", "x-region"],
)
def test_masker_treats_an_unknown_extra_header_as_secret(name: str) -> None:
    masker = build_masker("", [(name, "planted-secret")])
    assert masker.mask_headers({name: "planted-secret"}) == {name: "*" * 14}
    assert masker.mask_headers({"x-request-id": "planted-secret"}) == {"x-request-id": "*" * 14}
    assert masker.mask(b'{"echo": "planted-secret"}') == b'{"echo": "' + b"*" * 14 + b'"}'


def test_masker_masks_both_values_of_a_header_that_is_given_twice() -> None:
    masker = build_masker("configured-key-1", [("api-key", "header-secret-2"), ("API-Key", "configured-key-1")])
    assert not re.search("configured|header", masker.mask_text("configured-key-1 header-secret-2"))


def test_masker_shows_rate_limits_of_tokens_without_known_secrets() -> None:
    headers = {"x-ratelimit-remaining-tokens": "1200", "anthropic-ratelimit-tokens-reset": "2026-11-24T12:00:00Z"}
    masker = build_masker("planted-secret", ())
    assert masker.mask_headers(headers) == headers
    assert masker.mask_headers({"x-ratelimit-token": "planted-secret"}) == {"x-ratelimit-token": "*" * 14}


def test_masker_shows_extra_headers_that_name_the_client() -> None:
    headers = {"http-referer": "https://example.test", "x-title": "Toolbench", "openai-organization": "org-123456"}
    masker = build_masker("", headers.items())
    assert masker.mask_headers(headers) == headers
    assert masker.mask(b"Toolbench of org-123456") == b"Toolbench of org-123456"


def test_masker_masks_what_follows_a_scheme() -> None:
    masker = build_masker("", [("x-auth", "Bearer planted-secret")])
    assert masker.mask(b"sent planted-secret") == b"sent " + b"*" * 14


def test_masker_masks_the_longer_of_two_nested_secrets() -> None:
    masker = build_masker("secret-key", [("x-token", "secret-key-extended")])
    assert masker.mask(b"secret-key-extended secret-key") == b"*" * 19 + b" " + b"*" * 10


def test_masker_ignores_decoded_secret_that_is_no_text() -> None:
    masker, text = build_masker("%A9bcdefgh", ()), "ébcdefgh café"
    assert masker.mask_text(text) == text
    assert masker.split_at_secret(text) == (text, "")
    assert masker.mask_text(f"{text} %A9bcdefgh") == f"{text} {'*' * 10}"


def test_masker_without_a_secret_masks_nothing() -> None:
    assert build_masker("", ()).mask(b"anything \\u0073") == b"anything \\u0073"


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (OrderedDict(key="sk-secret-1234"), OrderedDict(key="*" * 14)),
        (Counter(["sk-secret-1234"]), Counter(["*" * 14])),
        (defaultdict(list, {"keys": ["sk-secret-1234"]}), defaultdict(list, {"keys": ["*" * 14]})),
    ],
)
def test_mask_value_masks_subclass_of_dict_and_keeps_class(value: object, masked: object) -> None:
    result = build_masker("sk-secret-1234", ()).mask_value((value, 7))
    assert result == (masked, 7)
    assert type(result[0]) is type(value)


def test_mask_known_secrets_knows_secrets_that_threads_add_together(monkeypatch: pytest.MonkeyPatch) -> None:
    known = secrets._MaskerRegistry()
    other = Thread(target=known.add, args=(frozenset({"sk-other-123456"}),))

    def build_slowly(added: Iterable[str]) -> Masker:
        if not other.ident:
            other.start()
            other.join(0.2)
        return Masker(added)

    monkeypatch.setattr(secrets, "Masker", build_slowly)
    known.add(frozenset({"sk-first-123456"}))
    other.join()

    assert known.masker.mask_text("sk-first-123456 sk-other-123456") == "*" * 15 + " " + "*" * 15
