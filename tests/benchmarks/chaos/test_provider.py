"""Provider of the chaos rounds: counts the requests of each run and poisons only the chosen run."""

import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from benchmarks.chaos.poison import POISON_BY_NAME
from benchmarks.chaos.provider import CountingProvider
from toolbench.providers.scripted_server import ScriptedReply


@pytest.fixture
def provider() -> Iterator[CountingProvider]:
    counting = CountingProvider()
    counting.start()
    yield counting
    counting.stop()


def send_chat_request(base_url: str) -> dict[str, Any]:
    body = json.dumps({"messages": [], "tools": [{"type": "function"}]}).encode()
    with urllib.request.urlopen(f"{base_url}/v1/chat/completions", body) as answer:
        answer_json: dict[str, Any] = json.loads(answer.read())
        return answer_json


def test_counting_provider_counts_requests_by_run(provider: CountingProvider) -> None:
    one, other = provider.build_base_url("one"), provider.build_base_url("other")

    send_chat_request(one)
    send_chat_request(one)
    send_chat_request(other)

    assert (provider.count_sent("one"), provider.count_sent("other"), provider.count_sent("third")) == (2, 1, 0)


def test_counting_provider_poisons_one_run_alone(provider: CountingProvider) -> None:
    poisoned, innocent = provider.build_base_url("poisoned", poison="usage 10^30"), provider.build_base_url("innocent")

    tokens = [
        send_chat_request(base)["usage"]["prompt_tokens"] for base in (poisoned, poisoned, poisoned, innocent, innocent)
    ]

    assert tokens == [10, 10**30, 10**30, 10, 10]


def test_counting_provider_limits_number_of_large_bodies(provider: CountingProvider) -> None:
    base_url = provider.build_base_url("large", poison="body of 15 MB")

    sizes = [len(send_chat_request(base_url)["choices"][0]["message"]["content"] or "") for _ in range(5)]

    assert sizes == [0, 15_000_000, 15_000_000, 0, 0]


def test_counting_provider_counts_requests_in_flight() -> None:
    counting = CountingProvider(delay_seconds=0.5)
    counting.start()
    slow, quick = counting.build_base_url("slow"), counting.build_base_url("quick", delay_seconds=0.0)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(send_chat_request, [slow] * 3))
    send_chat_request(quick)
    send_chat_request(quick)
    counting.stop()
    assert (counting.count_most_in_flight("quick"), counting.count_most_in_flight("other")) == (1, 0)
    assert counting.count_most_in_flight("slow") > 1


@pytest.mark.parametrize("name", POISON_BY_NAME)
def test_poison_builds_scripted_reply(name: str) -> None:
    assert isinstance(POISON_BY_NAME[name](), ScriptedReply)
