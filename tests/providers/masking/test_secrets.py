import json

import pytest

from toolbench.providers.masking.secrets import build_masker

KEY = 'sk-or/v1+"quoted"\\slash-é'
STARS = "*" * len(KEY.encode())


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
def test_a_secret_is_found_in_every_spelling_and_lengths_stay(text: str) -> None:
    masked = build_masker(KEY, ()).mask_text(text)
    assert "sk-or" not in masked
    assert "slash" not in masked
    assert "\\u00" not in masked
    assert len(masked.encode()) == len(text.encode())


def test_what_holds_no_secret_is_the_same_object() -> None:
    body = b'{"text": "na\\u00efve \\/ path"}'
    assert build_masker("sk-secret-1234", ()).mask(body) is body


def test_a_short_key_is_masked_in_its_header_only() -> None:
    masker = build_masker("ollama", ())
    assert masker.mask(b"ollama/gemma") == b"ollama/gemma"
    assert masker.mask_headers({"authorization": "Bearer ollama"}) == {"authorization": "*" * 13}


def test_secret_headers_by_name_are_masked_and_searched_for() -> None:
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
def test_extra_header_counts_as_secret_unless_known_not_to_be(name: str) -> None:
    masker = build_masker("", [(name, "planted-secret")])
    assert masker.mask_headers({name: "planted-secret"}) == {name: "*" * 14}
    assert masker.mask_headers({"x-request-id": "planted-secret"}) == {"x-request-id": "*" * 14}
    assert masker.mask(b'{"echo": "planted-secret"}') == b'{"echo": "' + b"*" * 14 + b'"}'


def test_extra_headers_that_say_who_asks_are_shown() -> None:
    headers = {"http-referer": "https://example.test", "x-title": "Toolbench", "openai-organization": "org-123456"}
    masker = build_masker("", headers.items())
    assert masker.mask_headers(headers) == headers
    assert masker.mask(b"Toolbench of org-123456") == b"Toolbench of org-123456"


def test_what_comes_after_a_scheme_is_a_secret_of_its_own() -> None:
    masker = build_masker("", [("x-auth", "Bearer planted-secret")])
    assert masker.mask(b"sent planted-secret") == b"sent " + b"*" * 14


def test_a_secret_inside_another_is_masked_with_the_longer_one() -> None:
    masker = build_masker("secret-key", [("x-token", "secret-key-extended")])
    assert masker.mask(b"secret-key-extended secret-key") == b"*" * 19 + b" " + b"*" * 10


def test_without_a_secret_nothing_is_masked() -> None:
    assert build_masker("", ()).mask(b"anything \\u0073") == b"anything \\u0073"
