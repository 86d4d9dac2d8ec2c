"""Home folders leave texts, whichever system wrote them."""

from __future__ import annotations

import pytest

from profkit.report.names import posix, without_homes


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at /home/ann/Sections/Fp.py:51", "at ~/Sections/Fp.py:51"),
        ("/Users/ann", "~"),
        (r"C:\Users\ann\x.cu(3)", r"~\x.cu(3)"),
        (
            r"in c:\users\Ann Bee\x.cu",
            r"in c:\users\Ann Bee\x.cu".replace(r"c:\users\Ann Bee", "~"),
        ),
        ("C:/Users/ann/x.cu", "~/x.cu"),
        ("/export/home/ann/x", "~/x"),
        ("/mnt/c/Users/ann/x", "~/x"),
        ("[lambda at /home/ann/a.cu:3:1] and /home/bob/b.cu", "[lambda at ~/a.cu:3:1] and ~/b.cu"),
        ("/opt/x.cu, /usr/home.txt, home/ann, at::home/ann", None),
        ("void f<float>(int, Users)", None),
    ],
)
def test_a_home_folder_is_a_tilde(text: str, shown: str | None) -> None:
    assert without_homes(text) == (text if shown is None else shown)
    assert without_homes(without_homes(text)) == without_homes(text)


def test_a_path_of_windows_has_slashes() -> None:
    assert posix(r"C:\Users\ann\x.cu") == "C:/Users/ann/x.cu"
    assert posix(r"/tmp/odd\name.cu") == r"/tmp/odd\name.cu"
