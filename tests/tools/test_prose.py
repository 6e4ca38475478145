import pytest

from tools import prose

pytestmark = pytest.mark.once


def written(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docstring.py", '"""The run tells its worker a field."""\n'),
        ("comment.py", "x = 1\n# The lock of whoever\n# makes an index first.\n"),
        ("message.py", 'message = f"expected a port from 1 to {most}, found {text!r}"\n'),
        ("part.md", "# Title\n\n* What is shown here is the state of the run.\n* The worker waits for its turn.\n"),
        ("page.html", "<p>{% if x %}These are those of {{ name }} and of others.{% endif %}</p>"),
        (".env.example", "# They are kept for so long as the files are.\nADE_X=1\n"),
    ],
)
def test_a_marked_sentence_fails(tmp_path, capsys, name, text):
    file = written(tmp_path, name, text)

    assert prose.main([str(file)]) == 1
    assert capsys.readouterr().out.splitlines()[0].startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.py", '"""The run reports a field to its worker."""\nwhoever_told_what_is_anew = 1\n'),
        ("plain.md", "The worker waits for its turn.\n\n```\nwhoever told what is that of nobody else\n```\n"),
        ("plain.html", "<style>/* whoever told those of others */</style><p>Nothing is running at the moment.</p>"),
    ],
)
def test_plain_sentences_and_code_pass(tmp_path, name, text):
    assert prose.main([str(written(tmp_path, name, text))]) == 0


def test_a_sentence_counts_once(tmp_path):
    number, marked = prose.read([written(tmp_path, "a.md", "Whoever is told anew waits. The others start at once.\n")])

    assert (number, len(marked)) == (2, 1)


def test_a_message_is_read_as_one_sentence_with_its_values(tmp_path):
    file = written(tmp_path, "a.py", 'x = f"expected {a} and {b} of them, found {c}"\n')

    assert [sentence.text for sentence in prose.read([file])[1]] == ["expected … and … of them, found …"]
