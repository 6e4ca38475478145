"""Declares all settings that are read from the environment. `python -m config.environment` prints `.env.example`."""

import sys

from config.values import (
    AZURE_CONTAINER,
    KEY,
    NAME,
    AzureConnection,
    DatabaseUrl,
    Days,
    DaysByStatus,
    Flag,
    Networks,
    OneOf,
    Setting,
    Text,
    Url,
    Whole,
    Words,
    Zone,
)

SECONDS = Whole(1, 7 * 24 * 3600)
SLOTS = Whole(1, 256)
PER_MINUTE = Whole(0, 10_000_000)

SETTINGS = (
    Setting(
        "ADE_ENV_FILE",
        Text("a file name"),
        ".env",
        "File with the other settings, relative to manage.py. Variables of the process environment override it.",
    ),
    Setting(
        "ADE_VAR_DIR",
        Text("a directory name"),
        "var",
        "Directory for everything that ADE writes on this machine, relative to manage.py.",
    ),
    Setting("DATABASE_URL", DatabaseUrl(), "", "URL of the database. Empty: SQLite in ADE_VAR_DIR.", secret=True),
    Setting("DEBUG", Flag(), "true", "Development mode. Set it to false where other people can reach ADE."),
    Setting(
        "SECRET_KEY",
        Text("any text (with DEBUG=false at least 32 characters; 50 random ones are safe)"),
        "",
        "Key that signs sessions and links. Empty: created once and kept in ADE_VAR_DIR, only with DEBUG=true.",
        secret=True,
    ),
    Setting(
        "ALLOWED_HOSTS",
        Words("host names separated by commas"),
        "localhost,127.0.0.1,[::1]",
        "Host names under which people reach ADE.",
    ),
    Setting("WEB_CONCURRENCY", SLOTS, "1", "Number of web server processes."),
    Setting("ADE_MAX_CONCURRENCY", SLOTS, "2", "Maximum number of concurrent runs per worker."),
    Setting(
        "ADE_QUEUE_SIZE",
        Whole(1, 10_000_000),
        "",
        "Maximum number of queued and running runs; new ones are refused above it. Empty: no limit.",
    ),
    Setting("ADE_MAX_UPLOAD_BYTES", Whole(1, 1 << 40), str(100 << 20), "Maximum size of an uploaded file in bytes."),
    Setting(
        "ADE_STORAGE",
        OneOf(("local", "azure")),
        "local",
        "Storage of files: local (below ADE_VAR_DIR) or azure (Azure Blob Storage).",
    ),
    Setting(
        "ADE_AZURE_STORAGE_CONNECTION",
        AzureConnection(),
        "",
        "Connection string of the storage account, including its key. Required for ADE_STORAGE=azure.",
        secret=True,
    ),
    Setting(
        "ADE_AZURE_CONTAINER",
        AZURE_CONTAINER,
        "documents",
        "Container for all files, used with ADE_STORAGE=azure. It must be private.",
    ),
    Setting(
        "ADE_RATE_READS",
        PER_MINUTE,
        "6000",
        "Maximum number of API reads per minute, for each token or person. 0: no limit.",
    ),
    Setting(
        "ADE_RATE_WRITES",
        PER_MINUTE,
        "1200",
        "Maximum number of API changes per minute, for each token or person. 0: no limit.",
    ),
    Setting(
        "ADE_RATE_UPLOADS",
        PER_MINUTE,
        "120",
        "Maximum number of API uploads per minute, for each token or person. 0: no limit.",
    ),
    Setting(
        "ADE_PROXIES",
        Networks(),
        "",
        "Trusted proxy networks. X-Forwarded-For is honoured only from these. Empty: none.",
    ),
    Setting(
        "ADE_SIGN_IN_FAILURES",
        Whole(1, 1_000_000),
        "50",
        "Number of failed sign-ins from one address, with any user names, after which it is locked for 15 minutes.",
    ),
    Setting(
        "ADE_WEB_STATEMENT_SECONDS",
        Whole(1, 24 * 3600),
        "30",
        "Maximum time of a database query of the web server in seconds (on SQLite: of a reading request). Longer ones"
        " are answered with 503.",
    ),
    Setting(
        "ADE_SESSION_IDLE_SECONDS",
        Whole(60, 365 * 24 * 3600),
        "43200",
        "Idle time in seconds after which people must sign in again. Automatic requests of open pages do not count.",
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
        "Maximum number of connections from one client address (behind a proxy: of concurrent requests).",
    ),
    Setting("ADE_KEEP_AUDIT_DAYS", Days(), "400", "Audit log retention in days."),
    Setting("ADE_RUN_TIMEOUT_SECONDS", SECONDS, "120", "Maximum duration of a run in seconds, counted from its start."),
    Setting("ADE_BUILD_TIMEOUT", SECONDS, "600", "Maximum duration of a build in seconds."),
    Setting(
        "ADE_BUILD_OFFLINE",
        Flag(),
        "false",
        "Build from the package cache only, without a package index. The index is set by uv's own variables.",
    ),
    Setting(
        "ADE_CACHE_DIR",
        Text("a directory name"),
        "",
        "Directory for downloaded packages. Empty: next to the environments.",
    ),
    Setting(
        "ADE_ENVIRONMENT_UNUSED_SECONDS",
        Whole(1, 10 * 365 * 24 * 3600),
        "1209600",
        "Time in seconds after which an unused environment is removed from this machine. It is made again when it is"
        " needed.",
    ),
    Setting(
        "ADE_ENVIRONMENTS_BYTES",
        Whole(1, 1 << 50),
        "",
        "Maximum size of all environments of this machine in bytes; the least recently used are removed first. Empty:"
        " no limit.",
    ),
    Setting(
        "ADE_ENGINE_MEMORY_BYTES",
        Whole(64 << 20, 1 << 44),
        str(4 << 30),
        "Maximum memory of all processes of a run together, and maximum address space of each of them, in bytes."
        " Numeric libraries reserve more than they use.",
    ),
    Setting(
        "ADE_RUN_PROCESSES", Whole(8, 100_000), "512", "Maximum number of concurrent processes and threads of a run."
    ),
    Setting(
        "ADE_RUN_DISK_BYTES",
        Whole(1 << 20, 1 << 44),
        str(4 << 30),
        "Maximum disk space of the files of a run in bytes, including deleted files that are still open.",
    ),
    Setting(
        "ADE_SANDBOX",
        OneOf(("required", "preferred", "off")),
        "",
        "Use of bubblewrap for the programs of configurations and readers: required (nothing runs without it),"
        " preferred (used where this machine supports it) or off. Empty: required with DEBUG=false, otherwise"
        " preferred.",
    ),
    Setting(
        "ADE_WARM_ENGINES",
        Flag(),
        "true",
        "Warm engines: one process for each build in use, which has imported its libraries and is forked for each run.",
    ),
    Setting("ADE_WARM_IDLE_SECONDS", SECONDS, "300", "Idle time in seconds after which a warm engine is stopped."),
    Setting("ADE_WARM_RUNS", Whole(1, 1_000_000), "1000", "Number of runs after which a warm engine is replaced."),
    Setting("ADE_MAX_BUILD_CONCURRENCY", SLOTS, "1", "Maximum number of concurrent builds per worker."),
    Setting("ADE_STAGE_CONCURRENCY", SLOTS, "2", "Maximum number of concurrent document stages per worker."),
    Setting(
        "ADE_KEEP_ARTICLES_DAYS",
        Days(),
        "90",
        "Retention in days of articles that no brief names, and of clusters without articles.",
    ),
    Setting(
        "ADE_KEEP_TOMBSTONES_DAYS",
        Days(),
        "400",
        "Time in days during which a deleted article is not stored again, even if its feed still lists it.",
    ),
    Setting(
        "ADE_KEEP_RUNS",
        DaysByStatus(("succeeded", "failed", "cancelled")),
        "off",
        "Retention of the events, the log and the artifacts of a run, by its final status, for example"
        " succeeded=90,failed=365.",
    ),
    Setting(
        "ADE_KEEP_JOB_RUNS",
        DaysByStatus(("success", "failed", "skipped_timeout")),
        "success=90,failed=365,skipped_timeout=365",
        "Retention of the events of a job run, by its final status.",
    ),
    Setting("ADE_KEEP_WORKERS_DAYS", Days(), "365", "Retention of workers without a heartbeat in days."),
    Setting("ADE_JOB_CONCURRENCY", SLOTS, "2", "Maximum number of concurrent job runs per worker."),
    Setting(
        "ADE_SCHEDULES",
        Flag(),
        "true",
        "Whether workers watch the schedules of jobs. With false, jobs run only when they are triggered.",
    ),
    Setting(
        "ADE_FEED_NETWORKS",
        Networks(),
        "",
        "Non-public networks in which feeds are allowed. Empty: none; feeds must be on the internet.",
    ),
    Setting("ADE_FEED_INTERVAL_SECONDS", SECONDS, "900", "Time in seconds between two fetches of a feed that answers."),
    Setting(
        "ADE_WEBHOOK_CONCURRENCY",
        SLOTS,
        "2",
        "Maximum number of concurrent webhook deliveries per worker. Each webhook gets one at a time.",
    ),
    Setting(
        "ADE_WEBHOOK_NETWORKS",
        Networks(),
        "",
        "Non-public networks in which webhook receivers are allowed, also without TLS. Empty: none.",
    ),
    Setting(
        "ADE_KEEP_DELIVERIES_DAYS",
        Days(),
        "30",
        "Retention of finished webhook deliveries in days, and maximum waiting time of deliveries of a paused webhook.",
    ),
    Setting(
        "ADE_BRIEF_TIME_ZONE",
        Zone(),
        "UTC",
        "Time zone of the daily brief, which is published at six in the morning, and of the times in it.",
    ),
    Setting(
        "ADE_PUBLIC_BRIEFS",
        Flag(),
        "false",
        "Let everyone who can reach ADE read the briefs without signing in. RSS readers need this.",
    ),
    Setting(
        "ADE_EXTRACTOR",
        OneOf(("local", "azure")),
        "local",
        "Reader of PDFs and images: local (ADE itself) or azure (Azure Document Intelligence, which costs money per"
        " page).",
    ),
    Setting("ADE_AZURE_DI_ENDPOINT", Url(), "", "Endpoint of the Azure Document Intelligence resource."),
    Setting(
        "ADE_AZURE_DI_KEY",
        KEY,
        "",
        "Key of the Azure Document Intelligence resource: one of its two keys.",
        secret=True,
    ),
    Setting("ADE_AZURE_MODEL", NAME, "prebuilt-layout", "Model of Azure Document Intelligence."),
    Setting(
        "ADE_EMBEDDER",
        OneOf(("local", "openai")),
        "local",
        "Source of text vectors: local (a model of ADE itself) or openai (OpenAI, which costs money per text).",
    ),
    Setting(
        "ADE_OPENAI_URL", Url(), "https://api.openai.com/v1", "Address of OpenAI or of a service with the same API."
    ),
    Setting("ADE_OPENAI_KEY", KEY, "", "OpenAI API key.", secret=True),
    Setting("ADE_OPENAI_MODEL", NAME, "text-embedding-3-small", "OpenAI model for text vectors."),
    Setting(
        "ADE_OPENAI_DIMENSIONS",
        Whole(1, 2000),
        "256",
        "Number of dimensions of an OpenAI vector. After a change of it or of the model, process all documents again.",
    ),
    Setting(
        "ADE_DOCUMENT_ATTEMPTS",
        Whole(1, 1000),
        "20",
        "Maximum number of attempts to process a document. The default outlasts an outage of one hour.",
    ),
    Setting(
        "ADE_DOCUMENT_RETRY_SECONDS",
        SECONDS,
        "5",
        "Maximum pause in seconds before the second attempt. It doubles with each further attempt; jitter takes off"
        " up to half.",
    ),
    Setting(
        "ADE_DOCUMENT_RETRY_MAX_SECONDS",
        SECONDS,
        "600",
        "Maximum pause in seconds between two attempts, unless a service asks for a longer one.",
    ),
    Setting(
        "ADE_SERVICE_PROBE_SECONDS",
        SECONDS,
        "60",
        "Maximum pause in seconds before Azure or OpenAI is tried again during an outage, unless it asks for a longer"
        " one.",
    ),
    Setting(
        "ADE_LEASE_SECONDS",
        SECONDS,
        "30",
        "Duration of a claim in seconds without renewal. After it, the work of a dead worker is recovered.",
    ),
    Setting(
        "ADE_TICK_SECONDS", SECONDS, "1", "Interval in seconds at which a worker looks for due, expired and new work."
    ),
    Setting(
        "ADE_ZOMBIE_SECONDS",
        SECONDS,
        "7200",
        "Maximum time in seconds that a processing job stays in progress while no worker works on it.",
    ),
    Setting(
        "ADE_DRAIN_SECONDS", SECONDS, "30", "Time in seconds in which a stopping worker finishes its running work."
    ),
    Setting(
        "ADE_EXIT_SECONDS",
        SECONDS,
        "3",
        "Additional time in seconds in which it exits and gives back the remaining work. Other workers recover the"
        " rest.",
    ),
    Setting(
        "ADE_DATABASE_WAIT_SECONDS",
        SECONDS,
        "300",
        "Time in seconds that a starting worker waits for the database and its migrations before it exits with an"
        " error.",
    ),
    Setting(
        "ADE_PORTABLE_SQL",
        Flag(),
        "false",
        "Let the kernel write with Django's ORM instead of its own SQL, as on SQL Server. Claims take about ten times"
        " as long. For comparing the two when you suspect the SQL.",
    ),
    Setting("WORKER_NAME", NAME, "", "Name of this machine's worker. Empty: the host name."),
    Setting("ADE_LOG_FORMAT", OneOf(("text", "json")), "text", "Format of log lines."),
    Setting(
        "ADE_LOG_LEVEL",
        OneOf(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
        "INFO",
        "Minimum level of the log lines that are written.",
    ),
    Setting(
        "ADE_ALLOW_FAILPOINTS",
        Flag(),
        "false",
        "Tests only: allow ADE_FAILPOINTS and ADE_TEST_APPS. Never use it where the data matters.",
    ),
    Setting("ADE_FAILPOINTS", Text(), "", "Tests only: places where the process fails, and how."),
    Setting("ADE_TEST_APPS", Words(), "", "Tests only: additional installed apps."),
)

KINDS = {setting.name: setting.kind for setting in SETTINGS}
# Setting, choice -> the settings that this choice requires.
NEEDED_BY = (
    ("ADE_STORAGE", "azure", ("ADE_AZURE_STORAGE_CONNECTION",)),
    ("ADE_EXTRACTOR", "azure", ("ADE_AZURE_DI_ENDPOINT", "ADE_AZURE_DI_KEY")),
    ("ADE_EMBEDDER", "openai", ("ADE_OPENAI_KEY",)),
)


def example() -> str:
    return "# Copy to .env and change what you need. Every value below is the default.\n" + "".join(
        f"\n# {setting.help}\n# Allowed: {setting.kind.allowed}.\n#{setting.name}={setting.default}\n"
        for setting in SETTINGS
    )


if __name__ == "__main__":
    sys.stdout.write(example())
