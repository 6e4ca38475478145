import pytest

from builds import packages
from tests.examples.running import EXAMPLES

pytestmark = [pytest.mark.once, pytest.mark.long]

PACKAGES = sorted(path.parent for path in EXAMPLES.glob("*/ade.toml"))


def test_there_are_three():
    assert [path.name for path in PACKAGES] == ["invoice", "spreadsheet", "statistics"]


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.name)
def test_an_example_can_be_imported_as_it_is(path):
    package = packages.read_directory(path)

    assert list(packages.problems_of(package)) == []
    assert package.entry_point == "main"
    assert "main.py" in package.files


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: path.name)
def test_an_example_pins_what_it_needs(path):
    lines = packages.read_directory(path).requirements.split()

    assert all("==" in line for line in lines)
