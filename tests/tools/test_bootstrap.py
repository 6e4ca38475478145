import re

import pytest
from django.conf import settings

from tools.bootstrap import pinned_uv, version_problem

pytestmark = pytest.mark.once

BASE = settings.BASE_DIR / "requirements" / "base.txt"


def test_an_old_python_is_told_what_is_needed_and_what_was_found():
    problem = version_problem((3, 10, 13), "python3")

    assert problem is not None
    assert "needs Python 3.11 or newer; python3 is 3.10.13" in problem
    assert "make setup PY=python3.11" in problem


def test_a_python_that_is_new_enough_is_no_problem():
    assert version_problem((3, 11, 0), "python3") is None
    assert version_problem((4, 0, 0), "python3") is None


def test_uv_is_installed_with_all_its_hashes_and_nothing_else():
    lines = pinned_uv(BASE.read_text()).strip().splitlines()

    assert re.match(r"uv==[\d.]+ \\", lines[0])
    assert all(line.strip().startswith("--hash=sha256:") for line in lines[1:])
    assert len(lines) > 10
    assert not lines[-1].endswith("\\")
