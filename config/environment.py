"""All settings from the environment, each declared once.

`python -m config.environment` prints `.env.example`.
"""

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from config.values import (
    AzureConnection,
    AzureContainer,
    DatabaseUrl,
    Days,
    DaysByStatus,
    Flag,
    Key,
    Kind,
    Name,
    Networks,
    OneOf,
    Text,
    Url,
    Whole,
    Words,
    Zone,
)

WEEK_SECONDS = 7 * 24 * 3600
# gunicorn stops for a worker that exits with 3. With any other code it would restart it forever.
EXIT_CODE = 3
# Anyone who guesses SECRET_KEY can sign in as any user.
LEAST_KEY, LEAST_DIFFERENT = 32, 5


class BadEnvironment(Exception):
    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Setting:
    name: str
    kind: Kind
    # As text, so that a default is parsed exactly like an operator's value.
    default: str
    help: str
    secret: bool = False


SECONDS = Whole(1, WEEK_SECONDS)
SLOTS = Whole(1, 256)
PER_MINUTE = Whole(0, 10_000_000)

SETTINGS = (
    Setting(
        "ADE_ENV_FILE",
        Text("a file name"),
        ".env",
        "File with any of the other settings, relative to manage.py. The process environment wins over it.",
    ),
    Setting(
        "ADE_VAR_DIR",
        Text("a directory name"),
        "var",
        "Directory for everything that ADE writes on this machine, relative to manage.py.",
    ),
    Setting(
        "DATABASE_URL",
        DatabaseUrl(),
        "",
        "The database that holds all state. Empty: SQLite in ADE_VAR_DIR.",
        secret=True,
    ),
    Setting("DEBUG", Flag(), "true", "Development mode. Set it to false wherever others can reach ADE."),
    Setting(
        "SECRET_KEY",
        Text("any text; with DEBUG=false at least 32 characters; 50 random characters are safe"),
        "",
        "Signs sessions and links. Empty: made once and kept in ADE_VAR_DIR, but only with DEBUG=true.",
        secret=True,
    ),
    Setting(
        "ALLOWED_HOSTS",
        Words("host names separated by commas"),
        "localhost,127.0.0.1,[::1]",
        "The host names under which people reach ADE.",
    ),
    Setting("WEB_CONCURRENCY", SLOTS, "1", "How many processes answer the web."),
    Setting("ADE_MAX_CONCURRENCY", SLOTS, "2", "How many runs one worker executes at the same time."),
    Setting(
        "ADE_QUEUE_SIZE",
        Whole(1, 10_000_000),
        "",
        "How many runs may be queued or running before new ones are refused. Empty: no limit.",
    ),
    Setting(
        "ADE_MAX_UPLOAD_BYTES",
        Whole(1, 1 << 40),
        str(100 << 20),
        "How large a file may be that is to become a document.",
    ),
    Setting(
        "ADE_STORAGE",
        OneOf(("local", "azure")),
        "local",
        "Where files are kept: below ADE_VAR_DIR, or in Azure Blob Storage.",
    ),
    Setting(
        "ADE_AZURE_STORAGE_CONNECTION",
        AzureConnection(),
        "",
        "The connection string of the storage account, with its key. For ADE_STORAGE=azure.",
        secret=True,
    ),
    Setting(
        "ADE_AZURE_CONTAINER",
        AzureContainer(),
        "documents",
        "The container for all files, which has to be private. For ADE_STORAGE=azure.",
    ),
    Setting(
        "ADE_RATE_READS",
        PER_MINUTE,
        "6000",
        "How often one token or person may read over the API in a minute. 0: as often as they like.",
    ),
    Setting("ADE_RATE_WRITES", PER_MINUTE, "1200", "How often they may change something in a minute. 0: as above."),
    Setting("ADE_RATE_UPLOADS", PER_MINUTE, "120", "How often they may send a file in a minute. 0: as above."),
    Setting(
        "ADE_PROXIES",
        Networks(),
        "",
        "Networks of the proxies in front of ADE: whom they name in X-Forwarded-For has asked. Empty: none.",
    ),
    Setting(
        "ADE_SIGN_IN_FAILURES",
        Whole(1, 1_000_000),
        "50",
        "Failed sign-ins from one address, with any names, after which it has to wait for 15 minutes.",
    ),
    Setting(
        "ADE_WEB_STATEMENT_SECONDS",
        Whole(1, 24 * 3600),
        "30",
        "Maximum time of a database query of the web, on SQLite of a reading request. A longer one answers 503.",
    ),
    Setting(
        "ADE_SESSION_IDLE_SECONDS",
        Whole(60, 365 * 24 * 3600),
        "43200",
        "Time without a request after which people have to sign in again. What open pages ask by themselves is none.",
    ),
    Setting(
        "ADE_CONNECTIONS",
        Whole(1, 100_000),
        "2000",
        "Maximum number of open connections of one web process. Each may need 4 open files.",
    ),
    Setting(
        "ADE_CONNECTIONS_PER_CLIENT",
        Whole(1, 100_000),
        "200",
        "Maximum number of connections of one client address. Behind a proxy: of concurrent requests.",
    ),
    Setting("ADE_KEEP_AUDIT_DAYS", Days(), "400", "How long it is kept who has asked for which change."),
    Setting("ADE_RUN_TIMEOUT_SECONDS", SECONDS, "120", "How long a run may take, counted from its start."),
    Setting("ADE_BUILD_TIMEOUT", SECONDS, "600", "How many seconds a build may take."),
    Setting(
        "ADE_BUILD_OFFLINE",
        Flag(),
        "false",
        "Build from the cache alone, without asking a package index. Which index that is, uv's own variables say.",
    ),
    Setting(
        "ADE_CACHE_DIR",
        Text("a directory name"),
        "",
        "Directory for downloaded packages. Empty: beside the environments.",
    ),
    Setting(
        "ADE_ENVIRONMENT_UNUSED_SECONDS",
        Whole(1, 10 * 365 * 24 * 3600),
        "1209600",
        "How long an environment that no run uses stays on this machine. It is made again when it is needed.",
    ),
    Setting(
        "ADE_ENVIRONMENTS_BYTES",
        Whole(1, 1 << 50),
        "",
        "How much all environments of this machine may take; the longest unused ones go first. Empty: no limit.",
    ),
    Setting(
        "ADE_ENGINE_MEMORY_BYTES",
        Whole(64 << 20, 1 << 44),
        str(4 << 30),
        "How much memory all processes of a run may take together, and how much address space each of them: numeric"
        " libraries reserve more than they use.",
    ),
    Setting(
        "ADE_RUN_PROCESSES",
        Whole(8, 100_000),
        "512",
        "How many processes and threads a run may have at the same time.",
    ),
    Setting(
        "ADE_RUN_DISK_BYTES",
        Whole(1 << 20, 1 << 44),
        str(4 << 30),
        "How much disk the files of a run may take, those that it deletes while they are open included.",
    ),
    Setting(
        "ADE_SANDBOX",
        OneOf(("required", "preferred", "off")),
        "",
        "Whether programs of configurations and readers run inside bubblewrap: required, or nothing is run; preferred,"
        " where this machine can; off. Empty: required with DEBUG=false, otherwise preferred.",
    ),
    Setting(
        "ADE_WARM_ENGINES",
        Flag(),
        "true",
        "Keep a process for each build in use that has its libraries imported, and fork it for each run.",
    ),
    Setting("ADE_WARM_IDLE_SECONDS", SECONDS, "300", "How long such a process is kept that no run needs."),
    Setting("ADE_WARM_RUNS", Whole(1, 1_000_000), "1000", "After how many runs such a process is replaced."),
    Setting("ADE_MAX_BUILD_CONCURRENCY", SLOTS, "1", "How many builds one worker makes at the same time."),
    Setting("ADE_STAGE_CONCURRENCY", SLOTS, "2", "How many document stages one worker does at the same time."),
    Setting(
        "ADE_KEEP_ARTICLES_DAYS",
        Days(),
        "90",
        "How long articles are kept that no brief names, and clusters without articles.",
    ),
    Setting(
        "ADE_KEEP_TOMBSTONES_DAYS",
        Days(),
        "400",
        "For how long an article that has gone does not come back, if its feed still lists it.",
    ),
    Setting(
        "ADE_KEEP_RUNS",
        DaysByStatus(("succeeded", "failed", "cancelled")),
        "off",
        "How long the events, the log and the artifacts of a run are kept, by how it ended: succeeded=90,failed=365.",
    ),
    Setting(
        "ADE_KEEP_JOB_RUNS",
        DaysByStatus(("success", "failed", "skipped_timeout")),
        "success=90,failed=365,skipped_timeout=365",
        "How long the events of a slot of a scheduled job are kept, by how it ended.",
    ),
    Setting("ADE_KEEP_WORKERS_DAYS", Days(), "365", "How long a worker is remembered that has not been heard of."),
    Setting("ADE_JOB_CONCURRENCY", SLOTS, "2", "How many scheduled jobs one worker does at the same time."),
    Setting(
        "ADE_SCHEDULES",
        Flag(),
        "true",
        "Whether workers look at the schedules of jobs. With false they run only what somebody triggers.",
    ),
    Setting(
        "ADE_FEED_NETWORKS",
        Networks(),
        "",
        "Networks that are not public and in which feeds may lie all the same. Empty: none, feeds are on the internet.",
    ),
    Setting("ADE_FEED_INTERVAL_SECONDS", SECONDS, "900", "How long a feed that answers is left alone."),
    Setting(
        "ADE_WEBHOOK_CONCURRENCY",
        SLOTS,
        "2",
        "How many deliveries of webhooks one worker sends at the same time. Of one webhook it is one at a time.",
    ),
    Setting(
        "ADE_WEBHOOK_NETWORKS",
        Networks(),
        "",
        "Networks that are not public and in which receivers of webhooks may lie all the same, also without TLS.",
    ),
    Setting(
        "ADE_KEEP_DELIVERIES_DAYS",
        Days(),
        "30",
        "How long deliveries of webhooks are kept that have ended, and how long others wait while theirs is paused.",
    ),
    Setting(
        "ADE_BRIEF_TIME_ZONE",
        Zone(),
        "UTC",
        "By whose clocks the daily brief is published at six in the morning, and its times are told.",
    ),
    Setting(
        "ADE_PUBLIC_BRIEFS",
        Flag(),
        "false",
        "Let everybody who can reach ADE read the briefs, not only who is signed in. Readers of RSS need it.",
    ),
    Setting(
        "ADE_EXTRACTOR",
        OneOf(("local", "azure")),
        "local",
        "Who reads PDFs and images: ADE itself, or Azure Document Intelligence, which costs money for each page.",
    ),
    Setting("ADE_AZURE_DI_ENDPOINT", Url(), "", "Where Azure Document Intelligence is, as its resource says."),
    Setting("ADE_AZURE_DI_KEY", Key(), "", "One of the two keys of that resource.", secret=True),
    Setting("ADE_AZURE_MODEL", Name(), "prebuilt-layout", "The model of Azure Document Intelligence that reads."),
    Setting(
        "ADE_EMBEDDER",
        OneOf(("local", "openai")),
        "local",
        "Who makes vectors of texts: a model of ADE itself, or OpenAI, which costs money for each text.",
    ),
    Setting(
        "ADE_OPENAI_URL",
        Url(),
        "https://api.openai.com/v1",
        "Where OpenAI is, or whoever speaks as it does.",
    ),
    Setting("ADE_OPENAI_KEY", Key(), "", "A key that OpenAI has given.", secret=True),
    Setting("ADE_OPENAI_MODEL", Name(), "text-embedding-3-small", "The model of OpenAI that makes vectors."),
    Setting(
        "ADE_OPENAI_DIMENSIONS",
        Whole(1, 2000),
        "256",
        "How many numbers such a vector has. Another number, or another model, needs all documents processed again.",
    ),
    Setting(
        "ADE_DOCUMENT_ATTEMPTS",
        Whole(1, 1000),
        "20",
        "How many attempts the processing of a document has before it fails. The default outlasts an hour of trouble.",
    ),
    Setting(
        "ADE_DOCUMENT_RETRY_SECONDS",
        SECONDS,
        "5",
        "The longest pause before the second attempt. It doubles with each further one; jitter takes off up to half.",
    ),
    Setting(
        "ADE_DOCUMENT_RETRY_MAX_SECONDS",
        SECONDS,
        "600",
        "The longest pause between two attempts, if no service asks for a longer one.",
    ),
    Setting(
        "ADE_SERVICE_PROBE_SECONDS",
        SECONDS,
        "60",
        "The longest pause before Azure or OpenAI is asked again while it does not answer, unless it asks for more.",
    ),
    Setting(
        "ADE_LEASE_SECONDS",
        SECONDS,
        "30",
        "How long a claim holds without being renewed: how soon the work of a dead worker is taken up.",
    ),
    Setting("ADE_TICK_SECONDS", SECONDS, "1", "How often a worker looks for due, expired and new work."),
    Setting(
        "ADE_ZOMBIE_SECONDS",
        SECONDS,
        "7200",
        "How long a processing job may stay in progress with nobody working on it.",
    ),
    Setting(
        "ADE_DRAIN_SECONDS",
        SECONDS,
        "30",
        "How long a worker that was asked to stop lets its work finish.",
    ),
    Setting(
        "ADE_EXIT_SECONDS",
        SECONDS,
        "3",
        "How long it may take after that to end and give back what is left. The rest is recovered by others.",
    ),
    Setting(
        "ADE_DATABASE_WAIT_SECONDS",
        SECONDS,
        "300",
        "How long a worker that starts waits for the database, and for its migrations, before it ends with an error.",
    ),
    Setting("WORKER_NAME", Name(), "", "Name of this machine's worker. Empty: the host name."),
    Setting("ADE_LOG_FORMAT", OneOf(("text", "json")), "text", "How log lines look."),
    Setting(
        "ADE_LOG_LEVEL",
        OneOf(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
        "INFO",
        "The least serious log lines that are written.",
    ),
    Setting(
        "ADE_ALLOW_FAILPOINTS",
        Flag(),
        "false",
        "Tests only: allows ADE_FAILPOINTS and ADE_TEST_APPS. Never true where the data matters.",
    ),
    Setting("ADE_FAILPOINTS", Text(), "", "Tests only: where the process is to fail, and how."),
    Setting("ADE_TEST_APPS", Words(), "", "Tests only: further installed apps."),
)

KINDS = {setting.name: setting.kind for setting in SETTINGS}
# Settings that a chosen service requires.
NEEDED_BY = (
    ("ADE_STORAGE", "azure", ("ADE_AZURE_STORAGE_CONNECTION",)),
    ("ADE_EXTRACTOR", "azure", ("ADE_AZURE_DI_ENDPOINT", "ADE_AZURE_DI_KEY")),
    ("ADE_EMBEDDER", "openai", ("ADE_OPENAI_KEY",)),
)


def read(source: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    problems: list[str] = []
    for setting in SETTINGS:
        # Env.str() would not do: it reads a value that begins with $, as a random key may, as another variable's name.
        text = source.get(setting.name, "").strip() or setting.default
        try:
            values[setting.name] = setting.kind.parse(text) if text else empty(setting.kind)
        except ValueError:
            problems.append(refusal(setting, text))
    problems += [] if problems else contradictions(values)
    if problems:
        raise BadEnvironment(problems)
    return values


def read_or_exit(source: Mapping[str, str]) -> dict[str, Any]:
    try:
        return read(source)
    except BadEnvironment as bad:
        stop(bad.problems)


def stop(problems: list[str]) -> NoReturn:
    lines = "".join(f"  {problem}\n" for problem in problems)
    sys.stderr.write(f"ADE cannot start with these settings:\n{lines}Each is explained in .env.example.\n")
    raise SystemExit(EXIT_CODE)


def empty(kind: Kind) -> Any:
    if isinstance(kind, Text):
        return ""
    return [] if isinstance(kind, Words | Networks) else None


def refusal(setting: Setting, text: str) -> str:
    return f"{setting.name} is {shown(setting, text)!r}; allowed: {setting.kind.allowed}."


def shown(setting: Setting, text: str) -> str:
    if not setting.secret:
        return _without_password(text) if isinstance(setting.kind, Url) else text
    return _without_password(text) if isinstance(setting.kind, DatabaseUrl) else "***"


def _without_password(text: str) -> str:
    """Hide the password of a URL; the rest helps to find the mistake."""
    return re.sub(r"(://[^:/?#@]*):.*@", r"\1:***@", text)


def contradictions(values: Mapping[str, Any]) -> Iterator[str]:
    if not values["DEBUG"] and not values["SECRET_KEY"]:
        yield "SECRET_KEY is ''; allowed with DEBUG=false: any text; 50 random characters are safe."
    elif not values["DEBUG"] and not _is_hard_to_guess(values["SECRET_KEY"]):
        yield (
            f"SECRET_KEY is ***; allowed with DEBUG=false: at least {LEAST_KEY} characters, {LEAST_DIFFERENT} of them "
            "different; 50 random characters are safe."
        )
    if not values["DEBUG"] and "*" in values["ALLOWED_HOSTS"]:
        yield (
            "ALLOWED_HOSTS is '*'; allowed with DEBUG=false: the host names of ADE, or .example.org for all below one; "
            "with any name, strangers choose where links in answers lead."
        )
    if not values["ADE_ALLOW_FAILPOINTS"]:
        for name in ("ADE_FAILPOINTS", "ADE_TEST_APPS"):
            if values[name]:
                yield f"{name} is {values[name]!r}; allowed without ADE_ALLOW_FAILPOINTS=true: nothing."
    for chooser, choice, needed in NEEDED_BY:
        if values[chooser] == choice:
            for name in needed:
                if not values[name]:
                    yield f"{name} is ''; allowed with {chooser}={choice}: {KINDS[name].allowed}."
    database = values["DATABASE_URL"]
    if database and database["ENGINE"] == "mssql" and importlib.util.find_spec("mssql") is None:
        yield (
            "DATABASE_URL is mssql://…; allowed without the packages of requirements/mssql.txt: "
            "sqlite:// and postgres://."
        )


def _is_hard_to_guess(key: str) -> bool:
    return len(key) >= LEAST_KEY and len(set(key)) >= LEAST_DIFFERENT


def example() -> str:
    head = "# Copy to .env and change what you need. Every value below is the default.\n"
    return head + "".join(f"\n{example_of(setting)}" for setting in SETTINGS)


def example_of(setting: Setting) -> str:
    return f"# {setting.help}\n# Allowed: {setting.kind.allowed}.\n#{setting.name}={setting.default}\n"


if __name__ == "__main__":
    sys.stdout.write(example())
