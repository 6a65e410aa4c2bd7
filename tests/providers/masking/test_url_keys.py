"""Tests that keys in addresses are found, and that the paths of real providers are left unchanged."""

import random
import string
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolbench.providers.endpoint import Endpoint
from toolbench.providers.http.request_template import build_request_template
from toolbench.providers.masking.url_keys import find_keys, find_url_secrets, looks_like_key, mask_address
from toolbench.providers.templates import load_templates

ALNUM = string.ascii_letters + string.digits
PLAIN = [
    "https://acme.openai.azure.com/openai/deployments/gpt-4o-mini-2024-07-18",
    "https://acme.openai.azure.com/openai/deployments/Meta-Llama-3.1-405B-Instruct-prod-EastUS2",
    "https://acme.services.ai.azure.com/openai/deployments/MyCompanyGpt4oDeployment2024/chat",
    "https://api.cloudflare.com/client/v4/accounts/0123456789abcdef0123456789abcdef/ai/v1",
    "https://gateway.ai.cloudflare.com/v1/0123456789abcdef0123456789abcdef/my-gateway/openai",
    "https://us-central1-aiplatform.googleapis.com/v1/projects/acme-prod-417203/locations/us-central1/endpoints/openapi",
    "https://aiplatform.googleapis.com/v1/projects/123456789012/locations/global/endpoints/4567890123456789012",
    "https://api.runpod.ai/v2/vllm-a1b2c3d4e5f6g7/openai/v1",
    "https://router.huggingface.co/hf-inference/models/Qwen/Qwen2.5-Coder-32B-Instruct/v1",
    "https://bench.test/serving/6f9619ff-8b86-d011-b42d-00c04fc964ff/v1",
    "https://bench.test/models/da39a3ee5e6b4b0d3255bfef95601890afd80709/v1",
    "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
    "https://dbc-1234abcd-5678.cloud.databricks.com/serving-endpoints",
    "https://gateway.test/xai-grok-4-fast-reasoning/v1",
    "https://gateway.test/accounts/fireworks/models/llama-v3p1-405b-instruct",
    "https://gateway.test/DeepSeek-R1-0528-FP8-TP8/v1",
    "http://127.0.0.1:11434/v1",
]
KEYS = [
    "sk-planted-key",
    "sk-proj-T3BlbkFJ0123456789abcdef",
    "sk-or-v1-0123456789abcdef0123456789abcdef",
    "sk-ant-api03-Ab12Cd34Ef56",
    "gsk_Ab12Cd34Ef56Gh78Ij90Kl12",
    "xai-Ab12Cd34Ef56Gh78Ij90Kl12",
    "pplx-Ab12Cd34Ef56Gh78Ij90",
    "nvapi-Ab12Cd34Ef56Gh78Ij90",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz",
    "r8_Ab12Cd34Ef56Gh78Ij90",
    "fw_3ZAb12Cd34Ef56Gh78",
    "AIzaSyA-0123456789_abcdefghijklmnopqrs",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "a3f1" * 16,
    "q7GmT2xVbL9sKpR4wZ8nYc3JhD6fEa1U",
]
segments = st.text(st.sampled_from(string.ascii_lowercase + "-"), min_size=1, max_size=12)
keys = st.text(st.sampled_from(ALNUM + "-_.~+"), min_size=8, max_size=60)


@pytest.mark.parametrize("address", [*PLAIN, *(template.base_url for template in load_templates().values())])
def test_find_keys_in_address_of_a_real_provider_is_empty(address: str) -> None:
    assert find_keys(address) == ()
    assert mask_address(address) == address


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "place", ["https://x.test/{}", "https://x.test/v1/{}/openai", "/{}/v1", "https://x.test/a;k={}"]
)
def test_find_keys_finds_a_key_of_a_vendors_form_and_it_is_masked(key: str, place: str) -> None:
    for spelled in (key, quote(key, safe="").replace("-", "%2D"), quote(quote(key.replace("-", "%2D")))):
        address = place.format(spelled)

        assert find_keys(address)
        assert spelled not in mask_address(address)
        assert len(mask_address(address)) == len(address)


@given(
    st.lists(segments, max_size=4), st.lists(segments, max_size=4), keys, st.sampled_from(("as is", "escaped", "twice"))
)
def test_find_keys_finds_a_known_key_anywhere_in_the_path(
    before: list[str], after: list[str], key: str, spelling: str
) -> None:
    escaped = "".join(f"%{ord(character):02X}" for character in key)
    spelled = {"as is": key, "escaped": escaped, "twice": escaped.replace("%", "%25")}[spelling]
    address = "/".join(["https://x.test", *before, f"k{spelled}", *after])

    assert find_keys(address, [key])
    assert spelled not in mask_address(address, [key])


@given(st.lists(segments, max_size=4), st.text("0123456789abcdef", min_size=32, max_size=32), st.uuids())
def test_find_keys_ignores_ids_of_accounts(path: list[str], account: str, number: object) -> None:
    words = [word for word in path if not word.startswith(("sk-", "csk-"))]
    address = "/".join(["https://x.test", "v4", "accounts", account, str(number)])

    assert find_keys(address) == ()
    assert find_keys("/".join(["https://x.test", *(word for word in words if "sk-" not in word)])) == ()


@pytest.mark.parametrize("characters", [ALNUM, ALNUM + "-_"])
def test_looks_like_key_accepts_nearly_all_random_keys(characters: str) -> None:
    generator = random.Random(10)
    random_keys = ["".join(generator.choices(characters, k=length)) for length in (32, 43, 64) for _ in range(2000)]

    assert sum(map(looks_like_key, random_keys)) / len(random_keys) > 0.97


def test_mask_address_masks_user_query_and_fragment() -> None:
    masked = mask_address("https://user:planted@x.test:8443/v1?api-key=planted#planted")

    assert masked.startswith("https://************@x.test:8443/v1?")
    assert "planted" not in masked
    assert find_keys(mask_address("https://x.test/sk-planted-key/v1"))


def test_build_request_template_masks_a_key_in_the_address() -> None:
    template = build_request_template(Endpoint("https://x.test/sk-planted-key", "m"), "models")

    assert template.url == "https://x.test/sk-planted-key/v1/models"
    assert template.masked_url == "https://x.test/**************/v1/models"
    assert template.masker.mask(b"no route /sk-planted-key/v1") == b"no route /**************/v1"


@pytest.mark.parametrize("start", ["https://user:hunter22@gateway.test", "https://https://user:hunter22@gateway.test"])
def test_keys_before_an_address_in_the_path_are_masked(start: str) -> None:
    address = f"{start}/sk-planted-key/https://admin:hunter33@api.test/v1"
    assert find_keys(address) == ("sk-planted-key",)
    assert {"sk-planted-key", "user", "hunter22", "admin", "hunter33"} <= set(find_url_secrets(address))
    masked_start = start.replace("user:hunter22", "*" * 13)
    assert mask_address(address) == f"{masked_start}/{'*' * 14}/https://{'*' * 14}@api.test/v1"


@pytest.mark.parametrize("path", ["v1", "sk-abcdefghij", "mysecretvalue/v1"])
def test_mask_address_masks_a_known_secret_of_the_host_beside_any_path(path: str) -> None:
    assert "mysecret" not in mask_address(f"https://mysecretvalue.example/{path}", ["mysecretvalue"])


def test_mask_address_masks_a_known_secret_of_several_parts_beside_a_key() -> None:
    assert "value" not in mask_address("https://h.example/value/part/sk-abcdefghij", ["value/part"])
