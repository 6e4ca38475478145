"""ADE's settings as deployed, but for clients that connect without a proxy."""

from config.settings import *  # noqa: F403  # settings are added without a change here

SECURE_SSL_REDIRECT = False
