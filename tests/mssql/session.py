"""Print, as JSON, what ADE's backend does with a new connection. Nothing is executed.

It runs in a process of its own: mssql-django patches classes of Django in the process that imports it.
"""

import json
import sys

import django

django.setup()

from django.core.management import CommandError, call_command
from django.db import connections, models

from config.doctor import all_checks
from documents.models import Document
from runs.models import Run
from tests.mssql import server
from tests.mssql.engine.base import Raw
from work.sqlserver import base


class Wrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params):
        return Raw()


def main():
    database = Wrapper({**server.connection().settings_dict, "NAME": "ade"}, "default")
    database.ensure_connection()
    found = {
        "statements": list(database.connection.statements),
        "reads_while_reading": database.features.can_use_chunked_reads or database.supports_mars,
        "version": database.get_database_version(),
        "json_check": models.JSONField().db_check(database),
        "lists": [],
    }
    waiting = Run.objects.filter(status__in=["queued", "running"], gate="", build__status="ready", input_document=7)
    found["conditions"] = waiting.values("pk").order_by().query.get_compiler(connection=database).as_sql()
    names = [f"file {number}" for number in range(3000)]
    both = Document.objects.filter(pk__in=range(3000), file__in=names)
    for queryset in (both, Run.objects.filter(models.Q(pk__in=range(501)) | models.Q(pk__in=range(500)))):
        sql, params = queryset.values("pk").order_by().query.get_compiler(connection=database).as_sql()
        found["lists"].append([sql, [str(param) for param in params]])
    found["fitness"] = fitness(database)
    json.dump(found, sys.stdout)


def fitness(database):
    """Return what `migrate` and `doctor` say of a database with the collation of an installation that chose none."""
    connections["default"] = database
    try:
        call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
    except CommandError as error:
        refusal = str(error)
    check = next(check for check in all_checks() if check.name == "database.sql_server").run()
    return {"migrate": refusal, "doctor": [check.level, check.message, check.advice]}


if __name__ == "__main__":
    main()
