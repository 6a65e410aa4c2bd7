"""LangChain's own integration tests for chat models, on the gateway. They run in LangChain's environment."""

import os
from typing import Any

from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests


class TestGateway(ChatModelIntegrationTests):
    """ChatOpenAI with the address of the gateway."""

    @property
    def chat_model_class(self) -> Any:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": os.environ["GATEWAY_ALIAS"],
            "base_url": f"{os.environ['GATEWAY_URL']}/v1",
            "api_key": os.environ["GATEWAY_TOKEN"],
            "stream_usage": True,
            "max_retries": 0,
        }

    @property
    def structured_output_kwargs(self) -> dict[str, Any]:
        return {"method": "function_calling"}

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return os.environ["GATEWAY_OTHER_ALIAS"]
