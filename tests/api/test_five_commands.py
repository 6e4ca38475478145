import hashlib
import os
import re
import subprocess

import pytest
from django.conf import settings

from api import tokens
from builds import configurations, packages
from config.demo import EXAMPLES
from runs.models import Artifact, Run
from tests.api.serving import served

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]


def commands():
    text = (settings.BASE_DIR / "docs" / "api.md").read_text()
    return re.search(r"^## From a document.*?^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]


def test_there_are_five():
    assert len(re.findall(r"\bcurl\b", commands())) == len(re.findall(r"^# \d\.", commands(), re.MULTILINE)) == 5


def test_who_has_only_the_docs_gets_from_a_document_to_its_result(programs, workspace, olga, tmp_path):
    configuration, _ = configurations.store(workspace, packages.read(EXAMPLES / "invoice"))
    _, token = tokens.issue(workspace, olga, "curl", ["operate"], actor="olga")
    (tmp_path / "invoice.pdf").write_bytes((EXAMPLES / "documents" / "invoice.pdf").read_bytes())
    address = served(programs)
    programs.start("manage.py", "worker", "--name", "w1", ADE_TICK_SECONDS=1)
    known = {"ADE": address, "TOKEN": token, "CONFIGURATION": str(configuration.pk), "PATH": os.environ["PATH"]}

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands()],
        env=known,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )

    assert done.returncode == 0, done.stderr
    run = Run.objects.get()
    assert run.status == "succeeded"
    assert "RUN_SUCCEEDED" in done.stdout
    found = hashlib.sha256((tmp_path / "result").read_bytes()).hexdigest()
    assert found in set(Artifact.objects.filter(run=run).values_list("sha256", flat=True))
