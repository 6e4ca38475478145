import pytest

from tests.factories import RunFactory, RunFieldFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


def test_show_has_what_a_run_found_in_its_order(manage):
    run, box = RunFactory(status="running"), [0.1, 0.2, 0.3, 0.4]
    RunFieldFactory(run=run, position=1, name="total", value=12.5, confidence=0.9, page=1, box=box, step="sums")
    RunFieldFactory(run=run, position=0, name="number", value="A\x1b1")
    RunFieldFactory(position=0, name="of another run")

    nothing = {"confidence": None, "page": None, "step": "", "box": None}
    assert manage("run", "show", run.pk, "--json").json["fields"] == [
        {"position": 0, "name": "number", "value": "A\x1b1", **nothing},
        {"position": 1, "name": "total", "value": 12.5, "confidence": 0.9, "page": 1, "step": "sums", "box": box},
    ]


def test_show_without_json_has_them_as_a_table(manage):
    field = RunFieldFactory(name="number", value="A\x1b1")

    lines = manage("run", "show", field.run_id).out.splitlines()

    head = next(n for n, line in enumerate(lines) if line.startswith("POSITION"))
    assert lines[head].split() == ["POSITION", "NAME", "VALUE", "CONFIDENCE", "PAGE", "STEP"]
    assert lines[head + 1].split() == ["0", "number", "A\\x1b1"]


def test_a_run_that_found_nothing(manage):
    run = RunFactory()

    assert manage("run", "show", run.pk, "--json").json["fields"] == []
    assert "POSITION" not in manage("run", "show", run.pk).out
