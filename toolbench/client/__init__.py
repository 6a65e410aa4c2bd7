"""Python client of the HTTP API (docs/api.md)."""

from toolbench.client.connection import ToolbenchClient
from toolbench.client.documents import RemoteModel, RemotePlan, RemoteRun, RemoteRunDetail, RemoteTrial
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
    "RemoteModel",
    "RemotePlan",
    "RemoteRun",
    "RemoteRunDetail",
    "RemoteTrial",
    "TooManyRequestsError",
    "ToolbenchClient",
    "ToolbenchError",
    "UnreachableError",
]
