"""Functions that the playground's views share: they render its pages and launch its runs."""

from dataclasses import asdict

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from toolbench.lab.cases.conversations import build_case_request, save_as_case, save_message
from toolbench.lab.cases.edit import UnknownCaseError
from toolbench.lab.results.playground import ConversationPage, get_conversations
from toolbench.lab.runs.idempotent_launch import LaunchKeyError
from toolbench.web.forms.playground import CaseTrialsForm, MessageForm, MessageRunForm
from toolbench.web.forms.start_run import StartMode, plan_or_launch
from toolbench.web.launch_keys import USED_KEY, use_form_key
from toolbench.web.rendering import render_page
from toolbench.web.requests import Action, find_user, record
from toolbench.web.trial_context import get_trial_context, refresh_when_done


def render_new_conversation(
    request: HttpRequest, form: MessageForm, run_form: MessageRunForm, note: str = ""
) -> HttpResponse:
    """Render the form of a new conversation, with the newest conversations below it.

    `note` says where the content of the form is from; "" for none.
    """
    context = {"form": form, "run_form": run_form, "note": note, "conversations": get_conversations()}
    return render_page(request, "playground/start.html", context, status=422 if form.is_bound else 200)


def render_conversation(
    request: HttpRequest, page: ConversationPage, sent_forms: tuple[MessageForm, MessageRunForm] | None = None
) -> HttpResponse:
    """Render a conversation with its forms.

    Args:
        request: the request. If its URL has the settings of a message that was saved but not sent, the page shows the
            plan of that message's run.
        page: the conversation.
        sent_forms: forms with errors to show again; None to fill the forms in from the conversation.
    """
    source = page.shown.pk if page.shown else None
    form, run_form = sent_forms or (
        MessageForm(initial={**asdict(page.draft), "trial": source}),
        MessageRunForm(request.GET, settings=page.settings, source=source),
    )
    plan_request = None if sent_forms else run_form.build_request(page.case)
    result = plan_or_launch(run_form, plan_request, start=StartMode.PLAN, owner=None)
    context = {"page": page, "form": form, "run_form": run_form, "trials_form": CaseTrialsForm()}
    context |= {"launch_result": result}
    status = 422 if sent_forms else 200
    if page.shown is None:
        return render_page(request, "playground/show.html", context, status=status)
    _, trial_context = get_trial_context(request, page.shown.pk)
    response = render_page(request, "playground/show.html", context | trial_context, part="answers", status=status)
    return refresh_when_done(request, response, is_done=not page.is_waiting)


def send_message(
    request: HttpRequest, form: MessageForm, run_form: MessageRunForm, slug: str = ""
) -> HttpResponse | None:
    """Save the sent message, start its run and redirect to the conversation, once for each launch key.

    If paid requests must be confirmed or a setting must be corrected, the message is saved and nothing is sent; the
    conversation then shows the form.

    Args:
        request: the request of an operator.
        form: the message.
        run_form: the settings with which the message is sent.
        slug: slug of the conversation; "" for a new one.

    Returns:
        The redirect; None if a form has errors, or if the launch key cannot be used. A notice then reports the key.

    Raises:
        Http404: the conversation was deleted.
    """
    message = form.parse_message(slug, run_form)
    if message is None:
        return None
    try:
        with use_form_key(request) as launch_key:
            if launch_key.run is not None:
                return redirect("conversation", launch_key.run.cells.values_list("scenario", flat=True)[0])
            case = save_message(*message, slug=slug)
            url = reverse("conversation", args=[case.slug])
            subject = f"conversation {case.slug}" + (f", message {case.current}" if slug else "")
            record(request, Action.CHANGED if slug else Action.ADDED, subject, url)
            run_request = run_form.build_request(case)
            result = plan_or_launch(run_form, run_request, start=StartMode.ALL, owner=find_user(request))
            launch_key.run = result.run
    except LaunchKeyError:
        messages.error(request, USED_KEY)
        return None
    except UnknownCaseError as error:
        raise Http404(str(error)) from None
    return redirect(url if result.run else f"{url}?{run_form.render_query()}#send")


def launch_case(request: HttpRequest, slug: str, trial_id: int) -> HttpResponse:
    """Save a trial as a test case, run it and redirect to the run, once for each launch key.

    If paid requests must be confirmed or a setting must be corrected, redirect to the plan of the run. If the launch
    key cannot be used, redirect to the trial, where a notice says so.

    Args:
        request: the request of an operator.
        slug: slug of the conversation.
        trial_id: primary key of a trial of the conversation.

    Raises:
        CaseNotCreatedError: no test case can be created from the trial.
        DraftError: a test case cannot expect the trial's calls.
    """
    form = CaseTrialsForm(request.POST)
    try:
        with use_form_key(request) as launch_key:
            if launch_key.run is not None:
                return redirect("run", launch_key.run.pk)
            case, is_new = save_as_case(trial_id)
            if is_new:
                record(request, Action.ADDED, f"test case {case.slug}", reverse("case", args=[case.slug]))
            run_request = build_case_request(case, trial_id, form.count)
            result = plan_or_launch(form, run_request, start=StartMode.ALL, owner=find_user(request))
            launch_key.run = result.run
    except LaunchKeyError:
        messages.error(request, USED_KEY)
        return redirect("conversation-trial", slug, trial_id)
    return redirect("run", result.run.pk) if result.run else redirect(form.render_plan_url(run_request))
