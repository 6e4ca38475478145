import contextlib
import errno
import os
import secrets
import socket
import tempfile
from datetime import timedelta
from pathlib import Path

import environ

from config import PROGRAMS, VERSION, databases, environment_reader, logs

BASE_DIR = Path(__file__).resolve().parent.parent
PROGRAMS_DIR = PROGRAMS

environ.Env.read_env(BASE_DIR / os.environ.get("ADE_ENV_FILE", ".env"))
ENV = environment_reader.read_or_exit(os.environ)

VAR_DIR = BASE_DIR / ENV["ADE_VAR_DIR"]
STATIC_ROOT = VAR_DIR / "static"
# Holds uploads while they are being received.
FILE_UPLOAD_TEMP_DIR = VAR_DIR / "uploads"
try:
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, exist_ok=True)
except OSError as error:
    environment_reader.stop(
        [f"ADE_VAR_DIR is {str(VAR_DIR)!r}; use a directory that this user can write to ({error.strerror})."]
    )


def kept_secret_key(path: Path) -> str:
    """Return the installation's own key. If it is missing, create it, even if several processes start at once."""
    if not path.exists():
        # Write the key to a temporary file (mode 0600) and link that to `path`, so that no process reads half a key.
        with tempfile.NamedTemporaryFile("w", dir=path.parent) as file:
            file.write(secrets.token_urlsafe(64))
            file.flush()
            with contextlib.suppress(FileExistsError):
                os.link(file.name, path)
    key = path.read_text()
    if not key.strip():
        raise OSError(errno.ENODATA, "it is empty; remove it to create a new key")
    return key


def secret_key() -> str:
    path = VAR_DIR / "secret_key"
    try:
        return ENV["SECRET_KEY"] or kept_secret_key(path)
    except OSError as error:
        advice = "set SECRET_KEY, or make it a file that this user can read and write"
        environment_reader.stop([f"SECRET_KEY is kept in '{path}'; {advice} ({error.strerror})."])


# ADE's own settings.
ADE_VERSION = VERSION
WEB_CONCURRENCY: int = ENV["WEB_CONCURRENCY"]
ADE_MAX_CONCURRENCY: int = ENV["ADE_MAX_CONCURRENCY"]
ADE_QUEUE_SIZE: int | None = ENV["ADE_QUEUE_SIZE"]
ADE_MAX_UPLOAD_BYTES: int = ENV["ADE_MAX_UPLOAD_BYTES"]
ADE_RATE_READS: int = ENV["ADE_RATE_READS"]
ADE_RATE_WRITES: int = ENV["ADE_RATE_WRITES"]
ADE_RATE_UPLOADS: int = ENV["ADE_RATE_UPLOADS"]
ADE_PROXIES: list[str] = ENV["ADE_PROXIES"]
ADE_SIGN_IN_FAILURES: int = ENV["ADE_SIGN_IN_FAILURES"]
ADE_WEB_STATEMENT_SECONDS: int = ENV["ADE_WEB_STATEMENT_SECONDS"]
ADE_SESSION_IDLE_SECONDS: int = ENV["ADE_SESSION_IDLE_SECONDS"]
ADE_CONNECTIONS: int = ENV["ADE_CONNECTIONS"]
ADE_CONNECTIONS_PER_CLIENT: int = ENV["ADE_CONNECTIONS_PER_CLIENT"]
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
ADE_RUN_PROCESSES: int = ENV["ADE_RUN_PROCESSES"]
ADE_RUN_DISK_BYTES: int = ENV["ADE_RUN_DISK_BYTES"]
ADE_SANDBOX: str = ENV["ADE_SANDBOX"] or ("preferred" if ENV["DEBUG"] else "required")
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
ADE_DOCUMENT_ATTEMPTS: int = ENV["ADE_DOCUMENT_ATTEMPTS"]
ADE_DOCUMENT_RETRY_SECONDS: int = ENV["ADE_DOCUMENT_RETRY_SECONDS"]
ADE_DOCUMENT_RETRY_MAX_SECONDS: int = ENV["ADE_DOCUMENT_RETRY_MAX_SECONDS"]
ADE_SERVICE_PROBE_SECONDS: int = ENV["ADE_SERVICE_PROBE_SECONDS"]
ADE_ZOMBIE_SECONDS: int = ENV["ADE_ZOMBIE_SECONDS"]
ADE_DRAIN_SECONDS: int = ENV["ADE_DRAIN_SECONDS"]
ADE_EXIT_SECONDS: int = ENV["ADE_EXIT_SECONDS"]
ADE_DATABASE_WAIT_SECONDS: int = ENV["ADE_DATABASE_WAIT_SECONDS"]
ADE_PORTABLE_SQL: bool = ENV["ADE_PORTABLE_SQL"]
ADE_ALLOW_FAILPOINTS: bool = ENV["ADE_ALLOW_FAILPOINTS"]
ADE_FAILPOINTS: str = ENV["ADE_FAILPOINTS"]
WORKER_NAME: str = ENV["WORKER_NAME"] or socket.gethostname()

# The work types by dotted path, so that the app `work` need not import the apps whose work it does.
WORK_TYPES: list[str] = [
    "documents.work_types.DOCUMENT",
    "documents.work_types.JOB",
    "documents.work_types.STAGE",
    "builds.work_types.BUILD",
    "runs.work_types.RUN",
    "schedules.work_types.JOB_RUN",
    "webhooks.work_types.DELIVERY",
    *(f"{app}.work_types.KIND" for app in ENV["ADE_TEST_APPS"]),
]

# The state machines of models that have a history but are not work.
WORK_SUBJECTS: list[str] = [
    "work.boots.WORKER_STATES",
    "runs.queue.QUEUE_STATES",
    "schedules.history.SCHEDULED_JOB_STATES",
    "feeds.lifecycle.FEED_STATES",
    "webhooks.lifecycle.WEBHOOK_STATES",
]

# The scheduled jobs. Each app declares its own.
JOBS: list[str] = [
    "feeds.ingestion.INGESTION",
    "feeds.clustering.job.EVENT_CLUSTERING",
    "feeds.briefs.job.DAILY_BRIEF",
    "feeds.retention.cleanup.RETENTION",
    "webhooks.upkeep.WEBHOOK_UPKEEP",
    *(f"{app}.jobs.JOB" for app in ENV["ADE_TEST_APPS"]),
]

# The tables whose rows retention deletes, each by its rule in feeds/retention/rules.py. A system check verifies this.
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
    "webhooks.Delivery",
]
# The tables whose rows retention never deletes. A policy may still delete data that belongs to such a row.
IMMUTABLE: list[str] = [
    "feeds.Brief",
    "feeds.BriefItem",
    "feeds.BriefArticle",
    "feeds.FeedSource",
    "runs.Run",
    "runs.RunField",
    "schedules.JobRun",
    "schedules.ScheduledJob",
    "runs.Queue",
    "builds.Configuration",
    "builds.Build",
    "workspaces.Workspace",
    "documents.Document",
    "documents.DocumentProcessingJob",
    "documents.Stage",
    "webhooks.Webhook",
]

# The retention policies, in the order in which the retention job and `manage.py retention` apply them.
RETENTION: list[str] = [
    "feeds.retention.articles.ARTICLES",
    "feeds.retention.leftovers.CLUSTERS",
    "feeds.retention.leftovers.TOMBSTONES",
    "runs.retention.RUNS",
    "runs.retention.JOB_RUNS",
    "runs.retention.WORKERS",
    # This one removes only environments of the machine on which it runs.
    "runs.retention.ENVIRONMENTS",
    "api.retention.ANSWERS",
    "api.retention.AUDIT",
    "api.retention.ATTEMPTS",
    "api.retention.SESSIONS",
]

# Conditions under which a document is in use and must not be purged. In them, the document is a subquery's outer row.
DOCUMENT_NEEDS: list[str] = ["documents.models.processing.has_a_stage_at_work", "runs.models.document_has_a_run"]

# Functions that act on a change of a document's status, in the same transaction: see `documents/followers.py`.
DOCUMENT_FOLLOWERS: list[str] = ["runs.processing_gates.follow"]

# The rules that must hold in the database. `manage.py doctor` checks them.
WORK_INVARIANTS: list[str] = [
    "work.invariants.INVARIANTS",
    "documents.invariants.INVARIANTS",
    "builds.invariants.INVARIANTS",
    "schedules.invariants.INVARIANTS",
    "runs.invariants.INVARIANTS",
    "feeds.invariants.INVARIANTS",
    "webhooks.invariants.INVARIANTS",
]

# django-q2 stores the schedules and reports which are due (schedules/scheduler.py). It reads this variable at import.
os.environ.pop("Q_CLUSTER_NAME", None)
Q_CLUSTER = {
    "name": "ade",
    # django-q2's cluster is never started. Instead, the worker that holds a lease calls its scheduler.
    "scheduler": False,
    # ADE handles missed slots itself, as each job declares.
    "catch_up": False,
    "time_zone": "UTC",
    "broker_class": "schedules.scheduler.Doorbell",
    # Values for the unused cluster. Without them, django-q2 warns.
    "workers": 1,
    "timeout": 60,
    "retry": 120,
    "max_attempts": 1,
    "ack_failures": True,
}

# The settings of Django and other packages.
DEBUG: bool = ENV["DEBUG"]
SECRET_KEY: str = secret_key()
ALLOWED_HOSTS: list[str] = ENV["ALLOWED_HOSTS"]
DATABASES = {"default": databases.database(ENV["DATABASE_URL"], BASE_DIR, VAR_DIR)}
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
    # Must come before "schedules", which unregisters django-q2's admin pages.
    "django_q",
    "schedules",
    "workspaces",
    "documents",
    "builds",
    "runs",
    "feeds",
    "webhooks",
    # Has the page with the API's description and its static files.
    "api",
    "console",
    *ENV["ADE_TEST_APPS"],
]

MIDDLEWARE = [
    "api.middleware.assign_request_ids",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "api.audit.audit_changes",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "api.signins.answer_lockout",
    "api.signins.end_idle_sessions",
    "api.outages.answer_outages",
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
            ]
        },
    }
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "config.formats"

STATIC_URL = "static/"
# These are set explicitly because their default is DEBUG, which the test runner changes after whitenoise has read it.
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS = DEBUG
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = VAR_DIR / "media"
# Give other users of this machine no access.
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
# The first handler stops reading files that are too large. The other two are Django's own.
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
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in (
        ("UserAttributeSimilarityValidator", {}),
        ("MinimumLengthValidator", {"min_length": 12}),
        ("CommonPasswordValidator", {}),
    )
]

LOGIN_URL, LOGIN_REDIRECT_URL = "console:sign_in", "console:dashboard"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# Failures are counted per user name and address, so that an attacker at another address cannot lock a user out.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
# If this were true, a person who keeps trying would be locked out forever.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
# Also limits all failures from one address, with any user names.
AXES_HANDLER = "api.attempts.Attempts"
AXES_CLIENT_IP_CALLABLE = "api.addresses.address_for_axes"
# The audit log records sign-ins, and api/audit_admin.py shows the counters, so axes need not do either.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "csrfmiddlewaretoken"]

# Counted from a person's last request; see api/signins.py.
SESSION_COOKIE_AGE = ADE_SESSION_IDLE_SECONDS
SESSION_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_SECURE = not DEBUG
SECURE_SSL_REDIRECT = not DEBUG
SECURE_HSTS_SECONDS = 0 if DEBUG else 30 * 24 * 3600
# W005 and W021 ask for HSTS on subdomains and preload lists. These affect other hosts, but ADE is responsible only for
# its own name. axes.W002 asks for the middleware of axes, which api/signins.py replaces.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021", "axes.W002"]
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

LOGGING = logs.configure(ENV["ADE_LOG_FORMAT"], ENV["ADE_LOG_LEVEL"])
