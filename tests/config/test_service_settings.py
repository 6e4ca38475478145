"""A service without its required settings is refused at the start, and not at the first document (fault F20)."""

import os
import subprocess
import sys

import pytest
from django.conf import settings

from config import environment_reader

pytestmark = pytest.mark.once

AZURE = {
    "ADE_EXTRACTOR": "azure",
    "ADE_AZURE_DI_ENDPOINT": "https://ade.cognitiveservices.azure.com/",
    "ADE_AZURE_DI_KEY": "secret-of-azure",
}
OPENAI = {"ADE_EMBEDDER": "openai", "ADE_OPENAI_KEY": "secret-of-openai"}
SECRETS = ("secret-of-azure", "secret-of-openai")
STARTS = {
    "a command": ["manage.py", "check"],
    "a worker": ["manage.py", "worker"],
    "the web": ["-c", "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; import config.asgi"],
}


def problems(**source):
    with pytest.raises(environment_reader.BadEnvironment) as caught:
        environment_reader.read(source)
    assert not any(secret in problem for problem in caught.value.problems for secret in SECRETS)
    return caught.value.problems


def without(values, name):
    return {each: value for each, value in values.items() if each != name}


def test_f20_without_services_nothing_is_needed():
    values = environment_reader.read({})

    assert (values["ADE_EXTRACTOR"], values["ADE_EMBEDDER"]) == ("local", "local")
    assert (values["ADE_AZURE_DI_KEY"], values["ADE_OPENAI_KEY"]) == (None, None)


def test_f20_with_all_that_they_need_services_are_taken():
    values = environment_reader.read(AZURE | OPENAI)

    assert values["ADE_AZURE_DI_ENDPOINT"] == "https://ade.cognitiveservices.azure.com"
    assert (values["ADE_AZURE_MODEL"], values["ADE_OPENAI_MODEL"]) == ("prebuilt-layout", "text-embedding-3-small")
    assert (values["ADE_OPENAI_URL"], values["ADE_OPENAI_DIMENSIONS"]) == ("https://api.openai.com/v1", 256)


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        (AZURE, "ADE_AZURE_DI_ENDPOINT"),
        (AZURE, "ADE_AZURE_DI_KEY"),
        (OPENAI, "ADE_OPENAI_KEY"),
    ],
)
def test_f20_what_is_missing_is_named_with_the_service_that_needs_it(values, missing):
    [problem] = problems(**without(values, missing))

    service = next(f"{name}={value}" for name, value in values.items() if name in ("ADE_EXTRACTOR", "ADE_EMBEDDER"))
    assert problem.startswith(f"{missing} is ''; with {service}, use ")


def test_f20_all_that_is_missing_is_told_together():
    found = problems(ADE_EXTRACTOR="azure", ADE_EMBEDDER="openai")

    assert [each.split()[0] for each in found] == ["ADE_AZURE_DI_ENDPOINT", "ADE_AZURE_DI_KEY", "ADE_OPENAI_KEY"]


@pytest.mark.parametrize("name", ["ADE_AZURE_DI_ENDPOINT", "ADE_OPENAI_URL"])
@pytest.mark.parametrize(
    "url",
    [
        "ade.cognitiveservices.azure.com",
        "ftp://ade.example",
        "https://",
        "https:///path",
        "https://ade.example:port",
        "https://ade.example:99999",
        "https://ade example",
        "https://ade.example/?key=1",
        "https://somebody:secret-of-azure@ade.example",
    ],
)
def test_f20_an_address_that_is_none_is_refused(name, url):
    [problem] = problems(**(AZURE | OPENAI | {name: url}))

    assert problem.startswith(f"{name} is ")
    assert "https://HOST" in problem


@pytest.mark.parametrize("name", ["ADE_AZURE_DI_KEY", "ADE_OPENAI_KEY"])
def test_f20_a_key_that_no_header_could_carry_is_refused_and_not_shown(name):
    [problem] = problems(**(AZURE | OPENAI | {name: "secret-of-azure\nHost: elsewhere"}))

    assert problem.startswith(f"{name} is '***'")


@pytest.mark.parametrize("dimensions", ["0", "2001", "many"])
def test_f20_more_dimensions_than_can_be_indexed_are_refused(dimensions):
    [problem] = problems(**(OPENAI | {"ADE_OPENAI_DIMENSIONS": dimensions}))

    assert "a whole number from 1 to 2000" in problem


@pytest.mark.parametrize("arguments", STARTS.values(), ids=STARTS)
def test_f20_nothing_starts_without_them(tmp_path, arguments):
    source = {"PATH": os.environ["PATH"], "ADE_VAR_DIR": str(tmp_path), "ADE_ENV_FILE": os.devnull}
    source |= without(AZURE, "ADE_AZURE_DI_ENDPOINT") | without(OPENAI, "ADE_OPENAI_KEY")

    ended = subprocess.run(
        [sys.executable, *arguments], cwd=settings.BASE_DIR, env=source, capture_output=True, text=True, check=False
    )

    assert ended.returncode == environment_reader.EXIT_CODE
    assert "ADE_AZURE_DI_ENDPOINT is ''; with ADE_EXTRACTOR=azure, use https://HOST" in ended.stderr
    assert "ADE_OPENAI_KEY is ''; with ADE_EMBEDDER=openai, use a key" in ended.stderr
    assert not any(secret in ended.stderr + ended.stdout for secret in SECRETS)
