"""Python client of the HTTP API (docs/api.md)."""

from toolbench.client.connection import ToolbenchClient
from toolbench.client.documents import (
    RemoteConversation,
    RemoteModel,
    RemotePlan,
    RemoteRun,
    RemoteRunDetail,
    RemoteSentMessage,
    RemoteTrial,
)
from toolbench.client.errors import (
    AuthenticationFailedError,
    ConflictError,
    InvalidRequestError,
    NotAllowedError,
    NotFoundError,
    ToolbenchError,
    TooManyRequestsError,
    UnreachableError,
)

__all__ = [
    "AuthenticationFailedError",
    "ConflictError",
    "InvalidRequestError",
    "NotAllowedError",
    "NotFoundError",
    "RemoteConversation",
    "RemoteModel",
    "RemotePlan",
    "RemoteRun",
    "RemoteRunDetail",
    "RemoteSentMessage",
    "RemoteTrial",
    "TooManyRequestsError",
    "ToolbenchClient",
    "ToolbenchError",
    "UnreachableError",
]
