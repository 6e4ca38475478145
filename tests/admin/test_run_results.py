import pytest
from django.urls import reverse

from tests.factories import ArtifactFactory, RunFactory, RunFieldFactory

pytestmark = [pytest.mark.edge, pytest.mark.django_db]


@pytest.fixture
def run(configuration, document):
    return RunFactory(status="running", configuration=configuration, input_document=document)


@pytest.fixture
def page(run, olga, sign_in):
    site = sign_in(olga)
    return lambda: site.get(reverse("admin:runs_run_change", args=[run.pk])).content.decode()


def test_the_page_of_a_run_leads_to_what_it_found_and_made(run, page):
    field = RunFieldFactory(run=run, name="total", value="<b>12.50</b>")
    artifact = ArtifactFactory(run=run, name="items.csv")
    RunFieldFactory(name="of another run")

    shown = page()

    link = reverse("admin:runs_runfield_change", args=[field.pk])
    assert f'<a href="{link}">total = &lt;b&gt;12.50&lt;/b&gt;</a>' in shown
    link = reverse("runs:download_artifact", args=[artifact.pk])
    assert f'<a href="{link}">items.csv</a>' in shown
    assert "of another run" not in shown


def test_of_many_it_names_the_first_and_leads_to_all(run, page, olga, sign_in):
    for position in range(25):
        RunFieldFactory(run=run, position=position)
        ArtifactFactory(run=run)
    RunFieldFactory()
    everything = f"{reverse('admin:runs_runfield_changelist')}?run={run.pk}"

    shown = page()

    assert shown.count("/admin/runs/runfield/") == 20 + shown.count('href="/admin/runs/runfield/"') + 1
    assert f'<a href="{everything}">all</a>' in shown
    listed = sign_in(olga).get(everything).context["cl"].result_list
    assert {each.run_id for each in listed} == {run.pk}


@pytest.mark.parametrize("asked", ["", "x", "9" * 18, "\u0663", "1' OR"])
def test_whatever_run_is_asked_for_the_list_answers(run, olga, sign_in, asked):
    RunFieldFactory(run=run)

    assert sign_in(olga).get(reverse("admin:runs_runfield_changelist"), {"run": asked}).status_code == 200


def test_a_run_without_results_says_so(page):
    assert '<div class="readonly">-</div>' in page()
