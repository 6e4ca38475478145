import pytest

from tools import make_docs

pytestmark = pytest.mark.once


@pytest.mark.parametrize("name", make_docs.PAGES)
def test_the_reference_matches_the_code(name):
    assert make_docs.current(name) == make_docs.PAGES[name](), "Run `make docs`."


def test_the_reference_has_no_other_pages():
    assert {path.name for path in make_docs.TARGET.iterdir()} == make_docs.PAGES.keys()


def test_the_check_names_the_stale_pages_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_docs, "TARGET", tmp_path)
    monkeypatch.setattr(make_docs, "PAGES", {"a.md": lambda: "new\n", "b.md": lambda: "same\n"})
    (tmp_path / "a.md").write_text("old\n")
    (tmp_path / "b.md").write_text("same\n")

    assert make_docs.main(["--check"]) == 1

    assert capsys.readouterr().out == "Not up to date: a.md. Run `make docs`.\n"
    assert (tmp_path / "a.md").read_text() == "old\n"


def test_it_writes_the_stale_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(make_docs, "TARGET", tmp_path / "reference")
    monkeypatch.setattr(make_docs, "PAGES", {"a.md": lambda: "new\n"})

    assert make_docs.main([]) == 0

    assert make_docs.current("a.md") == "new\n"
    assert make_docs.main(["--check"]) == 0
