"""Rendering of the playground's pages, and the launch of a message, for the views that lead to them."""

from dataclasses import asdict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from toolbench.lab.models import Case
from toolbench.lab.results.playground import ConversationPage, get_conversations
from toolbench.web.forms.playground import CaseTrialsForm, MessageForm, MessageRunForm
from toolbench.web.forms.start_run import StartMode, plan_or_launch
from toolbench.web.rendering import render_page
from toolbench.web.requests import find_user
from toolbench.web.trial_context import get_trace_context, refresh_when_done


def render_new_conversation(
    request: HttpRequest, form: MessageForm, run_form: MessageRunForm, note: str = ""
) -> HttpResponse:
    """Render the form of a new conversation, with the newest conversations below it."""
    action = request.get_full_path() if request.path == reverse("playground") else reverse("playground")
    context = {"form": form, "run_form": run_form, "note": note, "action": action}
    context |= {"conversations": get_conversations()}
    return render_page(request, "playground/start.html", context, status=422 if form.is_bound else 200)


def render_conversation(
    request: HttpRequest, page: ConversationPage, sent_forms: tuple[MessageForm, MessageRunForm] | None = None
) -> HttpResponse:
    """Render a conversation with the sent forms; without any, with the next message, or the plan of an unsent one."""
    source = page.shown.pk if page.shown else None
    form, run_form = sent_forms or (
        MessageForm(initial={**asdict(page.draft), "trial": source}),
        MessageRunForm(request.GET, settings=page.settings, source=source),
    )
    plan_request = None if sent_forms else run_form.build_request(page.case)
    answer = plan_or_launch(run_form, plan_request, start=StartMode.PLAN, owner=None)
    context = {"page": page, "form": form, "run_form": run_form, "answer": answer, "trials_form": CaseTrialsForm()}
    status = 422 if sent_forms else 200
    if page.shown is None:
        return render_page(request, "playground/show.html", context, status=status)
    _, trace_context = get_trace_context(request, page.shown.pk)
    response = render_page(request, "playground/show.html", context | trace_context, part="answers", status=status)
    return refresh_when_done(request, response, is_done=not page.is_waiting)


def launch_message(request: HttpRequest, case: Case, run_form: MessageRunForm) -> HttpResponse:
    """Start the run of a saved message and redirect to its conversation.

    If paid requests must be confirmed or a field must be corrected, nothing is sent and the page shows the form.
    """
    url = reverse("conversation", args=[case.slug])
    run_request = run_form.build_request(case)
    if plan_or_launch(run_form, run_request, start=StartMode.ALL, owner=find_user(request)).run:
        return redirect(url)
    return redirect(f"{url}?{run_form.render_query()}#send")
