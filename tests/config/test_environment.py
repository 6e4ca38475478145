import os
import subprocess
import sys

import pytest
from django.conf import settings

from config import environment, environment_reader
from runs.models import Run
from schedules.models import JobRun

pytestmark = pytest.mark.once

RANDOM = "k3y-of-many-letters" * 3
CONNECTION = "DefaultEndpointsProtocol=https;AccountName=ade;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net"
BAD = {
    "ADE_STORAGE": ["s3", "Azure"],
    "ADE_AZURE_CONTAINER": ["ab", "Documents", "a--b", "-ab", "a_b", "n" * 64],
    "DATABASE_URL": [
        "mysql://u:p@h/d",
        "postgres://h:port/d",
        "postgres://h",
        "sqlite://a.db",
        "sqlite://:memory:",
    ],
    "DEBUG": ["maybe", "2"],
    "WEB_CONCURRENCY": ["0", "many"],
    "ADE_MAX_CONCURRENCY": ["0", "-1", "257", "two", "1.5"],
    "ADE_QUEUE_SIZE": ["0", "no", "-5"],
    "ADE_RUN_TIMEOUT_SECONDS": ["0", "-1", "0.5", "2m"],
    "ADE_BUILD_TIMEOUT": ["0", "99999999"],
    "ADE_MAX_BUILD_CONCURRENCY": ["0"],
    "ADE_STAGE_CONCURRENCY": ["0"],
    "ADE_LEASE_SECONDS": ["0", "30s"],
    "ADE_TICK_SECONDS": ["0", "0.1"],
    "ADE_ZOMBIE_SECONDS": ["0"],
    "ADE_DRAIN_SECONDS": ["0"],
    "ADE_EXIT_SECONDS": ["0"],
    "ADE_DATABASE_WAIT_SECONDS": ["0"],
    "ADE_BRIEF_TIME_ZONE": ["Europe", "europe/berlin", "+02:00", "../UTC", "/etc/localtime", "n" * 300],
    "ADE_PUBLIC_BRIEFS": ["nobody"],
    "ADE_KEEP_ARTICLES_DAYS": ["0", "-1", "36501", "for ever", "1.5"],
    "ADE_KEEP_RUNS": ["90", "succeeded", "succeeded=0", "succeeded=off", "done=3", "failed=1,failed=2", "failed=1;x=2"],
    "ADE_KEEP_JOB_RUNS": ["succeeded=90", "success=", "=90"],
    "ADE_RATE_READS": ["-1", "many", "1.5"],
    "ADE_PROXIES": ["proxy", "10.0.0.0/33"],
    "ADE_KEEP_AUDIT_DAYS": ["0", "for ever"],
    "WORKER_NAME": ["two words", "a@b", "a:b", "n" * 65],
    "ADE_LOG_FORMAT": ["xml", "JSON"],
    "ADE_LOG_LEVEL": ["LOUD", "info"],
    "ADE_ALLOW_FAILPOINTS": ["perhaps"],
}
SECONDS = [setting.name for setting in environment.SETTINGS if setting.kind is environment.SECONDS]


def problems(**source):
    with pytest.raises(environment_reader.BadEnvironment) as caught:
        environment_reader.read(source)
    return caught.value.problems


def check(tmp_path, **variables):
    """Start a process with these variables and, of our environment, only the path."""
    source = {"PATH": os.environ["PATH"], "ADE_VAR_DIR": str(tmp_path), "ADE_ENV_FILE": os.devnull}
    return subprocess.run(
        [sys.executable, "manage.py", *variables.pop("command", ["check"]), *variables.pop("arguments", [])],
        cwd=settings.BASE_DIR,
        env=source | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_a_bad_value_is_named_with_what_was_found_and_what_is_allowed(name, value):
    [problem] = problems(**{name: value})

    kind = next(setting.kind for setting in environment.SETTINGS if setting.name == name)
    assert problem.startswith(f"{name} is ")
    assert kind.allowed in problem
    assert value.replace(":p@", ":***@") in problem


def test_several_bad_values_are_told_together():
    found = problems(DEBUG="maybe", ADE_LEASE_SECONDS="0", ADE_LOG_FORMAT="xml")

    assert [problem.split()[0] for problem in found] == ["DEBUG", "ADE_LEASE_SECONDS", "ADE_LOG_FORMAT"]


def test_passwords_do_not_appear_in_messages():
    [problem] = problems(DATABASE_URL="oracle://ade:hunter2:with@signs@db/ade")

    assert "hunter2" not in problem
    assert "with" not in problem
    assert "oracle://ade:***@db/ade" in problem


@pytest.mark.parametrize("name", SECONDS)
def test_every_time_works_down_to_one_second(name):
    assert environment_reader.read({name: "1"})[name] == 1


def test_the_times_are_all_known():
    assert len(SECONDS) == 13


def test_defaults_are_the_agreed_ones():
    values = environment_reader.read({})

    assert (
        values
        | {
            "ADE_MAX_CONCURRENCY": 2,
            "ADE_QUEUE_SIZE": None,
            "ADE_RUN_TIMEOUT_SECONDS": 120,
            "ADE_BUILD_TIMEOUT": 600,
            "ADE_MAX_BUILD_CONCURRENCY": 1,
            "ADE_STAGE_CONCURRENCY": 2,
            "ADE_LEASE_SECONDS": 30,
            "ADE_TICK_SECONDS": 1,
            "ADE_ZOMBIE_SECONDS": 7200,
            "DEBUG": True,
            "ADE_ALLOW_FAILPOINTS": False,
        }
        == values
    )


def test_how_long_something_is_kept():
    values = environment_reader.read({"ADE_KEEP_ARTICLES_DAYS": "OFF", "ADE_KEEP_RUNS": "succeeded=90, failed = 365"})

    assert values["ADE_KEEP_ARTICLES_DAYS"] is None
    assert values["ADE_KEEP_RUNS"] == {"succeeded": 90, "failed": 365}
    assert (
        environment_reader.read({})["ADE_KEEP_RUNS"]
        == environment_reader.read({"ADE_KEEP_JOB_RUNS": "off"})["ADE_KEEP_JOB_RUNS"]
        == {}
    )


@pytest.mark.parametrize(("name", "model"), [("ADE_KEEP_RUNS", Run), ("ADE_KEEP_JOB_RUNS", JobRun)])
def test_the_statuses_are_those_in_which_it_has_ended(name, model):
    assert set(environment.KINDS[name].statuses) == model.TERMINAL


def test_an_empty_value_is_the_default():
    assert environment_reader.read({"ADE_QUEUE_SIZE": "", "ADE_MAX_CONCURRENCY": " "}) == environment_reader.read({})


def test_a_key_that_begins_with_a_dollar_is_a_key():
    assert environment_reader.read({"SECRET_KEY": "$HOME-and-more"})["SECRET_KEY"] == "$HOME-and-more"


def test_without_debug_a_secret_key_is_required():
    [problem] = problems(DEBUG="false")

    assert problem.startswith("SECRET_KEY is ''; with DEBUG=false, use a secret text")
    assert environment_reader.read({"DEBUG": "false", "SECRET_KEY": RANDOM})["SECRET_KEY"] == RANDOM


@pytest.mark.parametrize("key", ["x", "x" * 50, "k3y-" * 8, "a1b2c3d4" * 3])
def test_a_key_that_can_be_guessed_is_refused_where_others_reach_ade(key):
    [problem] = problems(DEBUG="false", SECRET_KEY=key)

    assert problem.startswith("SECRET_KEY is ***; with DEBUG=false, use at least 32 characters")
    assert environment_reader.read({"SECRET_KEY": key})["SECRET_KEY"] == key


def test_not_every_host_name_is_allowed_where_others_reach_ade():
    [problem] = problems(DEBUG="false", SECRET_KEY=RANDOM, ALLOWED_HOSTS="ade.example.org,*")

    assert problem.startswith("ALLOWED_HOSTS is '*'; with DEBUG=false, use the host names of ADE")
    assert environment_reader.read({"ALLOWED_HOSTS": "*"})["ALLOWED_HOSTS"] == ["*"]


def test_azure_needs_its_connection():
    [problem] = problems(ADE_STORAGE="azure")

    assert problem.startswith("ADE_AZURE_STORAGE_CONNECTION is ''; with ADE_STORAGE=azure, use AccountName=NAME;")
    values = environment_reader.read({"ADE_STORAGE": "azure", "ADE_AZURE_STORAGE_CONNECTION": CONNECTION})
    assert (values["ADE_AZURE_STORAGE_CONNECTION"], values["ADE_AZURE_CONTAINER"]) == (CONNECTION, "documents")


@pytest.mark.parametrize(
    "connection",
    [
        "hunter2",
        "AccountName=ade;AccountKey=",
        "AccountKey=hunter2=",
        "AccountName=ade;AccountKey=not base64: hunter2",
        "BlobEndpoint=https://ade.example;SharedAccessSignature=sig=hunter2",
        "AccountName=ade;AccountKey=c2VjcmV0;BlobEndpoint=hunter2",
        "AccountName=ade;AccountKey=c2VjcmV0;BlobEndpoint=https://ade.example/?sig=hunter2",
    ],
)
def test_a_connection_that_cannot_sign_is_refused_and_not_shown(connection):
    [problem] = problems(ADE_STORAGE="azure", ADE_AZURE_STORAGE_CONNECTION=connection)

    assert problem.startswith("ADE_AZURE_STORAGE_CONNECTION is '***'; use AccountName=NAME;AccountKey=KEY")


@pytest.mark.parametrize("name", ["ADE_FAILPOINTS", "ADE_TEST_APPS"])
def test_what_is_for_tests_is_refused_elsewhere(name):
    [problem] = problems(**{name: "run.claimed:kill9"})

    assert problem.startswith(f"{name} is ")
    assert "ADE_ALLOW_FAILPOINTS" in problem
    assert environment_reader.read({name: "run.claimed:kill9", "ADE_ALLOW_FAILPOINTS": "true"})[name]


@pytest.mark.parametrize(
    ("url", "engine", "name", "host"),
    [
        ("sqlite:////data/ade.db", "django.db.backends.sqlite3", "/data/ade.db", ""),
        ("postgres://u:p%40ss@db:5433/ade", "django.db.backends.postgresql", "ade", "db"),
        ("postgresql://postgres:@/postgres?host=/tmp/pg", "django.db.backends.postgresql", "postgres", ""),
    ],
)
def test_database_urls(url, engine, name, host):
    database = environment_reader.read({"DATABASE_URL": url})["DATABASE_URL"]

    assert (database["ENGINE"], database["NAME"], database["HOST"]) == (engine, name, host)


def test_a_directory_as_postgres_host_becomes_an_option():
    database = environment_reader.read({"DATABASE_URL": "postgres://postgres:@/postgres?host=/tmp/pg"})["DATABASE_URL"]

    assert database["OPTIONS"] == {"host": "/tmp/pg"}


def test_mssql_needs_its_packages(monkeypatch):
    url = "mssql://u:p%40ss@host:1433/ade?TrustServerCertificate=yes"
    monkeypatch.setattr(environment_reader.importlib.util, "find_spec", lambda name: None)
    [problem] = problems(DATABASE_URL=url)
    assert "requirements/mssql.txt" in problem

    monkeypatch.setattr(environment_reader.importlib.util, "find_spec", lambda name: object())
    assert environment_reader.read({"DATABASE_URL": url})["DATABASE_URL"]["ENGINE"] == "mssql"


@pytest.mark.parametrize("option", ["driver=FreeTDS", "python_driver=pyodbc", "encrypt=no", "MARS_Connection=yes"])
def test_other_options_of_sql_server_are_refused(option):
    [problem] = problems(DATABASE_URL=f"mssql://u:secret@host/ade?{option}")

    assert problem.startswith(f"DATABASE_URL is 'mssql://u:***@host/ade?{option}'; use sqlite:///FILE")
    assert "TrustServerCertificate" in problem


def test_the_example_file_is_the_table():
    assert (settings.BASE_DIR / ".env.example").read_text() == environment.example()


def test_the_example_file_changes_nothing(tmp_path):
    uncommented = environment.example().replace("\n#", "\n").splitlines()
    lines = dict(line.split("=", 1) for line in uncommented if line.split("=")[0].isupper())

    assert len(lines) == len(environment.SETTINGS)
    assert environment_reader.read(lines) == environment_reader.read({})


def test_a_process_with_bad_values_ends_with_one_message_and_no_traceback(tmp_path):
    ended = check(tmp_path, ADE_MAX_CONCURRENCY="lots", DEBUG="maybe")

    assert ended.returncode == environment_reader.EXIT_CODE
    assert "ADE_MAX_CONCURRENCY is 'lots'" in ended.stderr
    assert "DEBUG is 'maybe'" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_a_directory_that_cannot_be_made_is_said_so(tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.touch()

    ended = check(tmp_path, ADE_VAR_DIR=str(in_the_way))

    assert ended.returncode == environment_reader.EXIT_CODE
    assert f"ADE_VAR_DIR is '{in_the_way}'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_env_file_is_read_and_the_process_environment_wins(tmp_path):
    env_file = tmp_path / ".env"
    env_file.write_text("ADE_LOG_FORMAT=xml\nADE_LEASE_SECONDS=0\n")

    ended = check(tmp_path, ADE_ENV_FILE=str(env_file), ADE_LOG_FORMAT="json")

    assert "ADE_LEASE_SECONDS is '0'" in ended.stderr
    assert "ADE_LOG_FORMAT" not in ended.stderr


def test_the_storage_follows_the_settings(tmp_path):
    ended = check(tmp_path, ADE_STORAGE="azure", ADE_AZURE_STORAGE_CONNECTION="AccountName=ade;AccountKey=hunter2")
    assert ended.returncode == environment_reader.EXIT_CODE
    assert "hunter2" not in ended.stderr

    chosen = {"ADE_STORAGE": "azure", "ADE_AZURE_STORAGE_CONNECTION": CONNECTION, "ADE_AZURE_CONTAINER": "files"}
    asking = "from django.core.files.storage import default_storage as s; print(s.url('a').partition('?')[0])"
    ended = check(tmp_path, **chosen, command=["shell", "--verbosity=0", f"--command={asking}"])

    assert ended.stdout == "https://ade.blob.core.windows.net/files/a\n"


def test_a_secret_key_is_made_once_for_development(tmp_path):
    assert check(tmp_path).returncode == 0
    made = tmp_path / "secret_key"
    first = made.read_text()
    assert check(tmp_path).returncode == 0

    assert made.read_text() == first
    assert len(first) >= 50
    assert made.stat().st_mode & 0o777 == 0o600


def test_the_deployment_check_finds_nothing_without_debug(tmp_path):
    key = "aB3$" + RANDOM
    ended = check(
        tmp_path,
        DEBUG="false",
        SECRET_KEY=key,
        arguments=["--deploy", "--fail-level", "WARNING"],
    )

    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "secret_key").exists()
