"""Views of the playground: conversations with a model, each message of which is a run of a draft case."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from toolbench.lab.cases.drafts import DraftError
from toolbench.lab.cases.edit import UnknownCaseError
from toolbench.lab.cases.from_trial import CaseNotCreatedError
from toolbench.lab.results.playground import ConversationPage, get_conversation
from toolbench.web.conversation_pages import launch_case, render_conversation, render_new_conversation, send_message
from toolbench.web.forms.playground import MessageForm, MessageRunForm, fill_in_forms


@require_http_methods(["GET", "HEAD", "POST"])
def start(request: HttpRequest) -> HttpResponse:
    """Show the form of a new conversation; on POST, send the message.

    ?trial=, ?case= or ?example=1 fills in the form.
    """
    if request.method == "POST":
        form, run_form = MessageForm(request.POST), MessageRunForm(request.POST)
        return send_message(request, form, run_form) or render_new_conversation(request, form, run_form)
    try:
        form, run_form, note = fill_in_forms(request.GET)
    except (CaseNotCreatedError, UnknownCaseError) as error:
        raise Http404(str(error)) from None
    return render_new_conversation(request, form, run_form, note)


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest, slug: str, trial_id: int | None = None) -> HttpResponse:
    """Show a conversation with one of its trials, for htmx only the trial; on POST, send the next message."""
    page = _find_conversation(slug, trial_id)
    if request.method != "POST":
        return render_conversation(request, page)
    form, run_form = MessageForm(request.POST), MessageRunForm(request.POST)
    return send_message(request, form, run_form, slug) or render_conversation(request, page, (form, run_form))


@require_POST
def run_case(request: HttpRequest, slug: str, trial_id: int) -> HttpResponse:
    """Save a trial of a conversation as a test case and run it.

    If paid requests must be confirmed, redirect to the plan of the run instead of starting it.
    """
    _find_conversation(slug, trial_id)
    try:
        return launch_case(request, slug, trial_id)
    except CaseNotCreatedError as error:
        messages.error(request, f"No run was started. {error}")
        return redirect("conversation-trial", slug, trial_id)
    except DraftError as error:
        messages.error(request, f"No run was started. Correct the test case first. {error}")
        return redirect(f"{reverse('case-new')}?trial={trial_id}")


def _find_conversation(slug: str, trial_id: int | None) -> ConversationPage:
    try:
        return get_conversation(slug, trial_id)
    except UnknownCaseError as error:
        raise Http404(str(error)) from None
