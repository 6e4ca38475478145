import re

import pytest
from django.conf import settings

pytestmark = pytest.mark.edge

DIRECTORY = settings.BASE_DIR / "requirements"
COMPILED = sorted(DIRECTORY.glob("*.txt"))
WRITTEN = sorted(DIRECTORY.glob("*.in"))


@pytest.mark.parametrize("path", COMPILED + WRITTEN, ids=lambda path: path.name)
def test_no_host_and_no_path_of_a_machine_is_in_them(path):
    text = path.read_text()

    assert not re.search(r"\w+://|--(extra-)?index-url|--find-links|--trusted-host", text)
    assert not re.search(r"(^|\s)(/|~/|file:)", text)


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.name)
def test_every_package_is_pinned_and_hashed(path):
    packages = [block for block in re.split(r"\n(?=[a-z])", path.read_text()) if block.strip()]

    assert packages
    for package in packages:
        assert re.match(r"[a-z0-9.-]+(\[[a-z,]+\])?==\S+", package)
        assert "--hash=sha256:" in package


def test_every_written_set_is_compiled():
    assert [path.stem for path in WRITTEN] == [path.stem for path in COMPILED]


def test_django_stays_on_its_long_term_release():
    assert "\ndjango>=5.2,<6\n" in (DIRECTORY / "base.in").read_text()
    # `make test-newest` looks ahead.
    assert "\ndjango==6" in (DIRECTORY / "newest.txt").read_text()


def test_one_version_of_each_package_in_all_sets():
    pins = {}
    # The newest set is installed alone, for other versions of Python.
    for path in (path for path in COMPILED if path.stem != "newest"):
        pinned = r"^([a-z0-9.-]+)(?:\[.*\])?==(\S+)(?: ; (.*?))? \\$"
        # A package may have one version for older Pythons and another for newer ones.
        for name, version, python in re.findall(pinned, path.read_text(), re.MULTILINE):
            assert pins.setdefault((name, python), version) == version
    assert len(pins) > 20
