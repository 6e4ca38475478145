import pytest

from tests.examples.running import EXAMPLES, run_example

pytestmark = [pytest.mark.once, pytest.mark.long]

LANGUAGES = {
    "en": (
        "The house by the river was sold in the spring, and they have not been back since."
        " It is a pity that we cannot go there."
    ),
    "de": (
        "Das Haus am Fluss wurde im Frühling verkauft, und sie sind nicht mehr zurückgekommen."
        " Es ist schade, dass wir nicht da sind."
    ),
    "fr": (
        "La maison au bord de la rivière est vendue, et ils ne sont pas revenus dans le village."
        " C'est une perte pour nous tous."
    ),
    "es": (
        "La casa junto al río se vendió en la primavera y los dueños no han vuelto."
        " Es una pena que no se pueda ir con ellos."
    ),
    "it": (
        "La casa sul fiume è stata venduta in primavera e loro non sono più tornati."
        " Che peccato che non si possa andare con gli altri."
    ),
    "nl": (
        "Het huis aan de rivier is in het voorjaar verkocht en ze zijn niet meer teruggekomen."
        " Het is jammer dat we er niet zijn."
    ),
}


@pytest.fixture
def run(tmp_path):
    return lambda content, name="text.txt", **told: run_example("statistics", tmp_path / "run", name, content, **told)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_language_is_guessed(run, language):
    outcome = run(LANGUAGES[language])

    assert outcome.value("language") == language
    assert outcome.fields["language"]["confidence"] > 0.6
    assert outcome.value("sentences") == 2


def test_the_letter_is_counted(run):
    outcome = run((EXAMPLES / "documents" / "letter.txt").read_bytes(), "letter.txt")

    assert outcome.result["outcome"] == "succeeded", outcome.printed
    assert (outcome.value("words"), outcome.value("paragraphs")) == (189, 8)
    assert outcome.value("readability") in ("very easy", "easy")
    mentions = outcome.artifact("mentions.csv").decode().splitlines()
    assert mentions == ["kind,as written,line", "date,18 November 2026,5", "date,6 November,9", "amount,£35,14",
                        "amount,£240,15", "date,29 November,18"]  # fmt: skip


def test_keywords_are_no_stop_words(run):
    outcome = run("The apple and the pear and the apple. " + LANGUAGES["en"])

    assert outcome.artifact("keywords.csv").decode().splitlines()[1].startswith("apple,2,")
    assert b"\nthe," not in outcome.artifact("keywords.csv").lower()


def test_an_extracted_text_goes_before_the_file(run):
    assert run(b"%PDF", "scan.pdf", text="Four words are here.").value("words") == 4


def test_hard_text_is_harder_than_easy_text(run):
    hard = "Notwithstanding considerable administrative reorganization, interdepartmental communication deteriorated. "
    assert run(hard * 10 + LANGUAGES["en"]).value("reading_ease") < 10


def test_few_words_get_no_rating(run):
    outcome = run("Hello, world!")

    assert outcome.result["outcome"] == "succeeded"
    assert {"language", "reading_ease"}.isdisjoint(outcome.fields)


def test_abbreviations_and_numbers_end_no_sentence(run):
    assert run("Mr. Smith met Dr. Jones on 3. May. They paid approx. two pounds.").value("sentences") == 2


@pytest.mark.parametrize(
    ("name", "content", "kind"), [("empty.txt", " \n", "text/plain"), ("scan.png", b"\x89PNG", "image/png")]
)
def test_a_document_without_text_is_rejected(run, name, content, kind):
    outcome = run(content, name)

    assert outcome.result["outcome"] == "rejected"
    assert f"{name} ({kind}) contains no text." in outcome.result["error"]
