"""Names of files made of texts that others chose."""

import re


def file_name(text: str, also: str = "", instead: str = "_") -> str:
    """A text as part of a file's name: letters, digits, hyphens and the characters of `also`.

    All others, however many in a row, become one `instead`.
    """
    return re.sub(f"[^A-Za-z0-9{re.escape(also)}-]+", instead, text)
