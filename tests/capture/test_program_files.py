"""Which files a program is made of, by its imports."""

from __future__ import annotations

from pathlib import Path

from profkit.capture.program_files import program_digest, program_files


def test_modules_beside_a_script_are_its_files(tmp_path: Path) -> None:
    texts = {
        "script.py": "import os\ndef late():\n    from helper import f\nimport package.part\n",
        "helper.py": "import script\nfrom package import other as g\n",
        "package/__init__.py": "",
        "package/part.py": "from . import near\nfrom .deep.far import x\nfrom ..helper import f\n",
        "package/near.py": "not Python",
        "package/other.py": "",
        "package/deep/far.py": "import missing",
        "unused.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(file.relative_to(tmp_path)) for file in program_files(tmp_path / "script.py")]
    assert files == ["script.py", *sorted(set(texts) - {"script.py", "unused.py"})]
    before = program_digest(tmp_path / "script.py")
    (tmp_path / "unused.py").write_text("x = 1", encoding="utf-8")
    assert program_digest(tmp_path / "script.py") == before
    (tmp_path / "package" / "near.py").write_text("x = 1", encoding="utf-8")
    assert program_digest(tmp_path / "script.py") != before
