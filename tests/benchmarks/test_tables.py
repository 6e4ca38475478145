import pytest

from benchmarks import adjacency, tables
from benchmarks.adjacency import Cell, Score
from benchmarks.report import Samples
from tests.understanding.table_pages import Page
from tests.understanding.test_tables import ruled

pytestmark = pytest.mark.once

CELL = "<cell start-row='{}' start-col='{}'><content>{}</content></cell>"
SPANNING = "<cell start-row='0' start-col='1' end-row='0' end-col='2'><content>Sales</content></cell>"


def truth(tmp_path, name, cells):
    file = tmp_path / "tables" / "us" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"<document><table><region page='1'>{cells}</region></table></document>")
    return file


def test_relations_are_those_of_the_next_texts_to_the_right_and_below():
    cells = [
        *(Cell("Region", 0, 0, 1, 0), Cell("Sales", 0, 1, 0, 2), Cell("2024", 1, 1, 1, 1), Cell("2025", 1, 2, 1, 2)),
        *(Cell("North", 2, 0, 2, 0), Cell("", 2, 1, 2, 1), Cell("1.5 Mio", 2, 2, 2, 2)),
    ]

    assert adjacency.relations(cells) == {
        ("Region", "Sales", "right"): 1,
        ("Region", "2024", "right"): 1,
        ("2024", "2025", "right"): 1,
        ("North", "1_5Mio", "right"): 1,
        ("Region", "North", "below"): 1,
        ("Sales", "2024", "below"): 1,
        ("Sales", "2025", "below"): 1,
        ("2025", "1_5Mio", "below"): 1,
    }


def test_the_truth_has_cells_that_span_others(tmp_path):
    file = truth(tmp_path, "us-001-str.xml", SPANNING + CELL.format(1, 1, "2024") + CELL.format(1, 2, "2025"))

    assert adjacency.truth(file) == adjacency.relations([Cell("Sales", 0, 1, 0, 2), Cell("2024", 1, 1, 1, 1)]) + (
        adjacency.relations([Cell("Sales", 0, 1, 0, 1), Cell("2025", 1, 1, 1, 1)])
        + adjacency.relations([Cell("2024", 0, 0, 0, 0), Cell("2025", 0, 1, 0, 1)])
    )


def test_what_was_found_too_much_lowers_precision_and_what_is_missing_recall():
    one, other = Cell("a", 0, 0, 0, 0), Cell("b", 0, 1, 0, 1)
    wanted = adjacency.relations([one, other, Cell("c", 1, 0, 1, 0), Cell("d", 1, 1, 1, 1)])

    score = adjacency.compare(adjacency.relations([one, other, Cell("x", 0, 2, 0, 2)]), wanted)

    assert score == Score(correct=1, found=2, wanted=4)
    assert (score.precision, score.recall, round(score.f1, 3)) == (0.5, 0.25, 0.333)


def test_the_tables_of_a_folder_are_compared_with_their_truth(tmp_path):
    rows = [["Article", "Quantity", "Price"], ["Apples", "12", "1,250.00"], ["Pears", "7", "80.50"]]
    cells = "".join(CELL.format(r, c, text) for r, row in enumerate(rows) for c, text in enumerate(row))
    # The second opinion, which is right.
    truth(tmp_path, "us-001b-str.xml", cells)
    file = truth(tmp_path, "us-001a-str.xml", cells.replace("Apples", "Grapes"))
    page = Page(file.with_name("us-001a.pdf"))
    ruled(page, rows=rows[1:])
    page.save()
    # Without a truth, there is nothing to compare.
    page.pdf.output(str(file.with_name("us-002.pdf")))
    samples, said = Samples(), []

    tables.measure(tmp_path, samples, said.append)
    tables.measure(file.parent, Samples(), said.append)

    assert samples.median("tables.f1") == samples.median("tables.f1.pooled") == 1
    assert said == ["us-001a: precision 1.00, recall 1.00"] * 2


def test_a_folder_without_documents_is_an_error(tmp_path):
    with pytest.raises(SystemExit, match="There are no PDFs with their truth in"):
        tables.measure(tmp_path, Samples(), print)
