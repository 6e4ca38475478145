"""`make setup` on a machine without access to a package index."""

import os
import shutil
import subprocess
import sys

import pytest
from django.conf import settings

pytestmark = [pytest.mark.once, pytest.mark.long]

NOBODY = "http://127.0.0.1:1"
UV = settings.BASE_DIR / ".venv" / "bin" / "uv"


def run(tmp_path, *command):
    away = {"HTTPS_PROXY": NOBODY, "HTTP_PROXY": NOBODY, "UV_HTTP_RETRIES": "0", "PIP_RETRIES": "0"}
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache")}
    indexes = {
        "UV_NO_CONFIG": "1",
        "UV_DEFAULT_INDEX": f"{NOBODY}/simple",
        "PIP_INDEX_URL": f"{NOBODY}/simple",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_CACHE_DIR": "1",
    }
    environment = own | away | indexes
    return subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_without_network_it_is_said_that_packages_are_missing(tmp_path):
    for name in ("requirements", "tools"):
        (tmp_path / name).symlink_to(settings.BASE_DIR / name)
    made = run(tmp_path, str(UV), "venv", "-q", "--python", sys.executable, ".venv")
    assert made.returncode == 0, made.stderr
    shutil.copy(UV, tmp_path / ".venv" / "bin" / "uv")

    ended = run(tmp_path, "make", "-f", str(settings.BASE_DIR / "Makefile"), "setup")

    assert ended.returncode == 2
    assert "packages of requirements/dev.txt could not be installed" in ended.stderr
    assert "No network: connect, or name a proxy in HTTPS_PROXY" in ended.stderr
    assert "UnknownIssuer: add the certificate of your company's authority to those of the system" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / ".venv" / ".synced").exists()


def test_without_network_it_is_said_that_uv_is_missing(tmp_path):
    ended = run(tmp_path, sys.executable, str(settings.BASE_DIR / "tools" / "bootstrap.py"), "venv")

    assert ended.returncode == 1
    assert "uv could not be installed" in ended.stderr
    assert "name a proxy in HTTPS_PROXY or a package index in PIP_INDEX_URL" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_file_where_the_environment_shall_be_is_named(tmp_path):
    (tmp_path / "venv").write_text("")

    ended = run(tmp_path, sys.executable, str(settings.BASE_DIR / "tools" / "bootstrap.py"), "venv")

    assert ended.returncode == 1
    assert "venv cannot be created: " in ended.stderr
    assert "Traceback" not in ended.stderr
