"""Search for keys inside addresses.

New base URLs must not contain keys, and stored addresses are masked.

A part of a path looks like a key if one of these is true, after percent-decoding:

- it contains a known secret of at least eight characters, in capital or small letters;
- it begins with `sk-`, `sk_`, `csk-` or `csk_` and eight more characters follow, or with another vendor's prefix
  (`_VENDOR_PREFIXES`) and at least 16 letters and digits follow (after `AIza`, 30 letters, digits, `-` and `_`); the
  prefix may also stand inside the part, after a character that is neither a letter nor a digit;
- it has a run of at least 20 letters and digits that contains capitals, small letters and digits, and in which at least
  two in five pairs of neighbours are of different kinds;
- it has a run of at least 32 letters, digits, `-` and `_` that contains capitals, small letters and digits, and in
  which, without `-` and `_`, at least half of the pairs of neighbours are of different kinds;
- it has a run of more than 40 letters and digits that contains both;
- it has four stars, because it was masked.

Account ids of 32 hexadecimal digits, UUIDs, commit hashes, and names of deployments, models, projects and regions do
not look like keys. An unknown key with the shape of an account id is not detected.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from functools import reduce
from urllib.parse import unquote, urlsplit

from toolbench.providers.masking.spellings import MIN_SECRET_CHARS

MAX_ID_CHARS = 40  # hexadecimal digits of a SHA-1
# Share of pairs of neighbours that are of different kinds (capital, small letter, digit); it is 0.62 in random text and
# about a third in joined words.
MIN_CHANGE_RATE, MIN_CHANGE_RATE_WITH_DASHES = 0.4, 0.5
_VENDOR_PREFIXES = re.compile(
    r"\*{4}|(?<![A-Za-z0-9])(?:c?sk[-_][A-Za-z0-9_.\-]{8}|AIza[A-Za-z0-9_\-]{30}|(?:gsk_|xai-|pplx-|nvapi-|tgp_v1_|fw_|hf_|r8_"
    r"|rk_live_|gh[pousr]_|github_pat_|glpat-|esecret_|dapi|ya29\.|eyJ)[A-Za-z0-9]{16})"
)
_SCHEMES = re.compile(r"\s*(?:[A-Za-z][A-Za-z0-9+.\-]*://)+")  # a scheme may be entered twice by mistake
_LOGIN = re.compile(r"(?:^|(?<=://))[^/]*@")  # also in an address that is part of a path
_RUN = re.compile(r"[A-Za-z0-9]{20,}")
_DASHED_RUN = re.compile(r"[A-Za-z0-9_\-]{32,}")


def find_keys(address: str, known_secrets: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the parts of an address or path that look like keys, as they are written there.

    Args:
        address: an address or a path.
        known_secrets: secrets that must not occur in the address; those shorter than `MIN_SECRET_CHARS` are ignored.

    Returns:
        The parts in order. If a known secret is outside of them, because it spans several parts or is in the host's
        name: the whole address.
    """
    path = _parse_path(address)
    parts = (part for part in re.split(r"[/;,=&:@]", path) if part)
    secrets = [secret.casefold() for secret in known_secrets if len(secret) >= MIN_SECRET_CHARS]
    keys = [part for part in parts if looks_like_key(part) or _has_secret(part, secrets)]
    rest = reduce(lambda text, key: text.replace(key, "*"), keys, address)
    other_secrets = [secret for secret in secrets if not any(_has_secret(key, [secret]) for key in keys)]
    if _has_secret(rest, secrets) or _has_secret(address, other_secrets):
        keys = [address]
    return tuple(dict.fromkeys(keys))


def looks_like_key(part: str) -> bool:
    """Return whether a part of a path has the shape of a key.

    All rules of this module count, except that for known secrets.
    """
    return any(
        _VENDOR_PREFIXES.search(text)
        or any(_is_longer_than_ids(run) or _is_random(run, MIN_CHANGE_RATE) for run in _RUN.findall(text))
        or any(
            _is_random(re.sub("[-_]", "", run), MIN_CHANGE_RATE_WITH_DASHES)
            for run in _DASHED_RUN.findall(text)
            if "-" in run or "_" in run
        )
        for text in _decode_percent(part)
    )


def mask_address(address: str, known_secrets: Iterable[str] = ()) -> str:
    """Return the address with user name, password, query, fragment and parts that look like keys masked.

    Args:
        address: an address or a path.
        known_secrets: secrets as for `find_keys`.
    """
    bare, query_mark, query = _split_once(address, "[?#]")
    masked = _LOGIN.sub(lambda login: "*" * (len(login[0]) - 1) + "@", bare)
    for key in find_keys(masked, known_secrets):
        masked = masked.replace(key, "*" * len(key))
    return f"{masked}{query_mark}{'*' * len(query)}"


def find_url_secrets(url: str) -> tuple[str, ...]:
    """Return the parts of an address that may be secrets, each as written and decoded.

    The parts are user name, password, values of the query, and parts of the path that look like keys.

    Returns:
        () if `url` is not a valid URL.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ()
    logins = _LOGIN.findall(_split_once(url, "[?#]")[0])
    users_and_passwords = [part for login in logins for part in login.removesuffix("@").split(":", 1)]
    written = [
        *users_and_passwords,
        *(pair.partition("=")[2] for pair in parts.query.split("&")),
        *find_keys(parts.path),
    ]
    return tuple(dict.fromkeys(text for part in written if part for text in (part, unquote(part))))


def _split_once(text: str, pattern: str) -> tuple[str, str, str]:
    """Return the text before the first match of a pattern, the match and the text after it.

    Returns:
        The whole text and two empty texts if nothing matches.
    """
    match = re.search(pattern, text)
    return (text, "", "") if match is None else (text[: match.start()], match[0], text[match.end() :])


def _parse_path(address: str) -> str:
    """Return the part of an address after the host, without its first character.

    An address without a scheme is a path and is returned unchanged.
    """
    schemes = _SCHEMES.match(address)
    return address if schemes is None else _split_once(address[schemes.end() :], "[/?#]")[2]


def _decode_percent(text: str) -> Iterator[str]:
    """Yield the text, and its form after each of up to four rounds of percent-decoding."""
    yield text
    for _ in range(4):
        decoded = unquote(text)
        if decoded == text:
            return
        yield (text := decoded)


def _has_secret(text: str, secrets: Iterable[str]) -> bool:
    return any(secret in decoded.casefold() for decoded in _decode_percent(text) for secret in secrets)


def _is_longer_than_ids(run: str) -> bool:
    return len(run) > MAX_ID_CHARS and not run.isalpha() and not run.isdigit()


def _is_random(run: str, min_change_rate: float) -> bool:
    kinds = [0 if character.isdigit() else 1 if character.isupper() else 2 for character in run]
    change_count = sum(kind != next_kind for kind, next_kind in itertools.pairwise(kinds))
    return len(set(kinds)) == 3 and change_count >= min_change_rate * (len(run) - 1)
