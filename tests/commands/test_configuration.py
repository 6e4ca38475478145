import pytest

from tests.factories import ConfigurationFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_list_chooses_a_workspace(manage, configuration, workspace):
    ConfigurationFactory()

    rows = manage("configuration", "list", "--workspace", workspace.pk, "--json").json["configurations"]

    assert [row["id"] for row in rows] == [configuration.pk]


@pytest.mark.parametrize("named", ["invoices", "Aster/invoices"])
def test_show_prints_the_files(manage, configuration, named):
    ended = manage("configuration", "show", named)

    assert ended.code == 0
    assert "--- main.py\ndef main(document):\n    return {}" in ended.out


def test_a_workspace_with_a_slash_in_its_name(manage):
    configuration = ConfigurationFactory(name="b/c", workspace__name="a/b")

    assert manage("configuration", "show", "a/b/b/c", "--json").json["id"] == configuration.pk


def test_digits_are_an_id(manage, configuration):
    ConfigurationFactory(name=str(configuration.pk))

    assert manage("configuration", "show", configuration.pk, "--json").json["id"] == configuration.pk


@pytest.mark.parametrize("named", ["nobody", "Aster/nobody", "999999", "9" * 100])
def test_one_that_does_not_exist(manage, named):
    ended = manage("configuration", "show", named, "--json")

    assert (ended.code, ended.error["code"], ended.error["details"]["wanted"]) == (6, "not_found", named)
