"""Code injected into a child Python: the program notices nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profkit.execution.injection import Hook, injected


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "subject.py").write_text("value = 1\n")
    (tmp_path / "hook.py").write_text("def install(module):\n    module.value += 41\n")
    return tmp_path


def run(work: Path, program: str, hooks: list[Hook] | None = None, **variables: str) -> str:
    base = {**os.environ, "PYTHONPATH": str(work / "lib"), **variables}
    if hooks is None:
        hooks = [Hook("subject", work / "hook.py")]
    environment = injected(base, hooks, work / "log")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_a_hook_runs_after_its_module_was_imported(work: Path) -> None:
    assert run(work, "import subject; print(subject.value)") == "42\n"
    assert not (work / "log").exists()


def test_a_module_that_was_looked_for_before_it_is_imported_has_its_hooks(work: Path) -> None:
    program = "from importlib.util import find_spec; assert find_spec('subject')"
    assert run(work, f"{program}; import subject; print(subject.value)") == "42\n"


def test_a_hook_runs_for_what_python_imports_at_its_start(work: Path) -> None:
    (work / "late.py").write_text("def install(module):\n    module.late = True\n")
    assert run(work, "import os; print(os.late)", [Hook("os", work / "late.py")]) == "True\n"


def test_a_module_that_is_not_imported_costs_nothing(work: Path) -> None:
    program = "import sys; print([n for n in sys.modules if 'profkit' in n or n == 'subject'])"
    assert run(work, program) == "[]\n"


def test_each_process_below_has_the_hooks(work: Path) -> None:
    program = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import subject; print(subject.value)'])"
    )
    assert run(work, program) == "42\n"


def test_the_module_keeps_its_loader(work: Path) -> None:
    program = (
        "import inspect, subject\n"
        "print(type(subject.__loader__).__name__, type(subject.__spec__.loader).__name__)\n"
        "print(inspect.getsource(subject))"
    )
    assert run(work, program) == "SourceFileLoader SourceFileLoader\nvalue = 1\n\n"


def test_a_failing_hook_is_in_the_log_alone(work: Path) -> None:
    (work / "hook.py").write_text("def install(module):\n    raise ValueError('broken hook')\n")
    assert run(work, "import subject; print(subject.value)") == "1\n"
    assert "ValueError: broken hook" in (work / "log").read_text()


def test_hooks_run_in_their_order(work: Path) -> None:
    (work / "twice.py").write_text("def install(module):\n    module.value *= 2\n")
    hooks = [Hook("subject", work / "hook.py"), Hook("subject", work / "twice.py")]
    assert run(work, "import subject; print(subject.value)", hooks) == "84\n"


def test_a_hidden_sitecustomize_is_executed_in_its_place(work: Path) -> None:
    (work / "lib" / "sitecustomize.py").write_text("print('mine'); mark = 7\n")
    program = "import sitecustomize, subject; print(sitecustomize.mark, subject.value)"
    assert run(work, program) == "mine\n7 42\n"


def test_failures_of_a_hidden_sitecustomize_are_reported_as_ever(work: Path) -> None:
    (work / "lib" / "sitecustomize.py").write_text("raise RuntimeError('mine')\n")
    output = run(work, "import subject; print(subject.value)")
    assert "Error in sitecustomize" in output
    assert output.startswith("42\n")


def test_the_search_path_is_the_programs_own(work: Path) -> None:
    program = "import sys; print([p for p in sys.path if 'injection' in p], sys.path[1])"
    assert run(work, program) == f"[] {work / 'lib'}\n"


def test_a_module_that_is_missing_stays_missing(work: Path) -> None:
    hooks = [Hook("no_such_module", work / "hook.py")]
    output = run(work, "import no_such_module", hooks)
    assert output.endswith("ModuleNotFoundError: No module named 'no_such_module'\n")
