"""Conversion of errors of the lab into form errors."""

from django import forms

from toolbench.lab.errors import InvalidFieldsError


def add_form_errors(form: forms.Form, error: InvalidFieldsError) -> None:
    """Add each error to its field, or to the form as a whole if the form has no such field.

    A field that had errors before gets no others.
    """
    invalid_names = set(form.errors)
    for name, sentences in error.errors.items():
        for sentence in sentences if name not in invalid_names else ():
            form.add_error(name if name in form.fields else None, sentence)
