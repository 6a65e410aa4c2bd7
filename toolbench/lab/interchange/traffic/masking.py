"""Masking of secrets in recorded traffic: known secrets, and texts that look like keys."""

import re
from typing import Any

from toolbench.providers.masking.secrets import Masker
from toolbench.providers.masking.values import map_texts

MASK = "[masked]"
# Keys with the prefix of an issuer (`sk-…`), JSON Web Tokens (`eyJ….….…`), private keys, and tokens after "Bearer". A
# JSON Web Token may begin after a hyphen only if its first part contains no hyphen. Otherwise, a long text with many
# hyphens would be slow to search: each `eyJ` in it would be compared with the whole rest of the text.
_SECRET_PATTERN = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|ghp|gho|ghs|github_pat|glpat|xox[abprs]|AKIA|AIza|ya29)[-_.]?[A-Za-z0-9_\-]{16,}"
    r"|(?:(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{8,}|\beyJ[A-Za-z0-9_]{8,})\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=Bearer )[A-Za-z0-9_\-.~+/=]{12,}",
    re.DOTALL,
)


def mask_secrets(value: Any, masker: Masker) -> Any:
    """Return a copy of a JSON value with the secrets in all its texts masked, keys included.

    Args:
        value: a JSON value.
        masker: masker of all known secrets.
    """
    return map_texts(masker.mask_value(value), _mask_text)


def _mask_text(text: str) -> str:
    return _SECRET_PATTERN.sub(MASK, text)
