"""Schemas of conversations of the playground."""

from typing import Annotated

from pydantic import Field

from toolbench.api.documents.cases import CaseBody
from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import AgreedBody, Count, Id, QuerySchema
from toolbench.api.documents.run_requests import Method
from toolbench.api.documents.runs import RunDocument
from toolbench.api.documents.trials import OutcomeOrState
from toolbench.engine.types import JsonObject
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS

MAX_TRIALS_OF_MESSAGE = 20  # repeats of one message
Name = Annotated[str, Field(max_length=200)]


class ConversationSummaryDocument(Schema):
    """Conversation in the list.

    Attributes:
        messages: number of messages that were saved; a message that was changed counts again.
        models: names of the models to which messages were sent, that of the newest run first.
    """

    slug: str
    title: str
    messages: int
    models: list[str]


class ConversationTrialDocument(Schema):
    """Answer of a conversation.

    Attributes:
        id: id of the trial that gave the answer.
        message: number of the message, from 1.
        index: number of the repeat, from 1.
        outcome: outcome of the trial; `queued` or `running` without one.
        model: name of the model.
    """

    id: int
    message: int
    index: int
    outcome: OutcomeOrState
    model: str


class ConversationDocument(Schema):
    """Conversation with its answers.

    Attributes:
        messages: number of messages that were saved; a message that was changed counts again.
        waiting: whether a trial of it is queued or running.
        trials: its newest answers, at most 200, the oldest first.
        trial: id of the trial whose answer `history` and `state` include; null before the first answer.
        history: the messages up to that answer in OpenAI's form, without the system prompt. If the trial gave no
            answer, the user's message is the last one. Null until the trial has ended, and if its bodies were removed.
        state: simulated state after that answer; null if `history` is null.
    """

    slug: str
    title: str
    messages: int
    waiting: bool
    trials: list[ConversationTrialDocument]
    trial: int | None
    history: list[JsonObject] | None
    state: JsonObject | None


class SentMessageDocument(Schema):
    """Message that was sent, with its run.

    Attributes:
        conversation: slug of the conversation.
        message: number of the message, from 1.
        run: the run that sends it.
        trials: ids of the trials that answer it.
    """

    conversation: str
    message: int
    run: RunDocument
    trials: list[int]


class ConversationQuery(QuerySchema):
    """Choice of an answer.

    Attributes:
        trial: id of its trial; null for the newest answer.
    """

    trial: Id | None = None


class MessageBody(CaseBody):
    """Message with tools and the settings with which it is sent.

    Attributes:
        expect: expected call or calls, or checks; null if any answer passes.
        model: id of the model. Null stands for the model of the previous answer; in a first message, for the model of
            `from_trial`.
        profile: name of the sampling profile. Null stands for the profile of the previous answer; in a first message,
            for the profile of `from_trial`, or the default profile.
        strategy: strategy, as in `strategies` of PlanBody; null as for `profile`.
        method: how calls are requested, as in `methods` of PlanBody; null as for `profile`.
        stream: whether to stream the answer; null as for `profile`.
        trials: how many times the message is sent.
        agreed: number of paid requests that you confirm. If it is too low, the answer is 409 with the number to
            confirm as its member `agreed`, and the message is not saved.
    """

    model: Id | None = None
    profile: Name | None = None
    strategy: Name | None = None
    method: Method | None = None
    stream: bool | None = None
    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS_OF_MESSAGE)] = 1
    agreed: Count = 0


class FirstMessageBody(MessageBody):
    """First message of a conversation.

    Attributes:
        from_trial: id of a trial. The conversation begins with the messages, tools and settings of this trial; other
            members of the body replace them.
    """

    from_trial: Id | None = None


class NextMessageBody(MessageBody):
    """Next message of a conversation.

    Members that are left out, such as `tools`, keep the values of the previous message.

    Attributes:
        trial: id of the trial whose answer the message follows; null for the newest trial.
    """

    trial: Id | None = None


class CaseTrialsBody(AgreedBody):
    """Run of an answer as a test case.

    Attributes:
        trials: number of trials.
    """

    trials: Annotated[int, Field(ge=1, le=MAX_CELL_TRIALS)] = 20
