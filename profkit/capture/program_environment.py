"""The environment variables of a profiled program: what looks secret is withheld.

nsys's reports embed the environment: a variable that is not passed can't leak.
"""

import os
import re
from collections.abc import Collection

_WORDS = re.compile(
    r"APIKEY|AUTH|AUTHORIZATION|BEARER|COOKIES?|CRED|CREDS|DSN|JWT|KEYS?|OAUTH|OTP|PASS|PASSES|PAT"
    r"|PWD|TOKENS?|(DB|SSH|USER)PASS|WEBHOOK"
)
"""Words of a name, between `_`, other signs, digits and changes of case: KERNEL, MONKEY and AUTHOR
are others."""
_PARTS = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|PASSCODE|PASSKEY|SECRET|CREDENTIAL|COOKIE"
    r"|(API|ACCESS|PRIVATE|SSH|AUTH)_?(KEY|TOKEN)"
)
"""What no word of another meaning contains."""
_FOLDERS = {"PWD", "OLDPWD"}  # of the shell
_COUNTED = {"KEYS", "PASSES", "TOKENS"}
_SWITCH = re.compile(r"|\d{1,2}|true|false|yes|no|on|off|none|auto", re.IGNORECASE)
_VALUE = re.compile(
    r"://(?:[^/?#\s@]+|[^/?#\s@:]*:(?!\d+/)[^\s@]*)@"  # a URL with a user's name or password
    r"|^[^\s/@:]+:[^\s/@]+@[\w.-]+"  # the same without its scheme, as proxies are written
    r"|(?:password|passwd|pwd|secret|token|(?:access|account|api)_?key)=[^\s;&]"  # connections
    r"|PRIVATE KEY-----|^(?:Bearer|Basic) \S",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def is_secret(name: str, value: str) -> bool:
    """Whether a variable looks as if it held a secret."""
    if _VALUE.search(value):
        return True
    if name in _FOLDERS or _SWITCH.fullmatch(value):
        return False
    words = {word.upper() for word in _WORD.findall(name) if _WORDS.fullmatch(word.upper())}
    if value.isdecimal() and words <= _COUNTED:
        words = set()
    return bool(words) or _PARTS.search(name.upper()) is not None


def reduced_environment(keep: Collection[str] = ()) -> dict[str, str]:
    """This process's variables without those that look secret; what is in `keep` stays."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in keep or not is_secret(name, value)
    }


def failure_remedy(last_words: str, otherwise: str) -> str:
    """What to do about a program that failed: pass a variable that its last words name."""
    withheld = os.environ.keys() - reduced_environment().keys()
    for name in sorted(withheld.intersection(re.findall(r"\w+", last_words))):
        return f"pass it the variable: --keep-env {name}"
    return otherwise
