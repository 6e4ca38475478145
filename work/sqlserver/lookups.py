"""How ADE writes some conditions for SQL Server, instead of Django and mssql-django. Only `base.py` imports this."""

import json
from functools import cache
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.lookups import Exact, In
from mssql import functions

from work.sql.statements import literal

VENDOR = "microsoft"


def long_list(self: In, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
    """Pass a long list of `x IN (…)` as one parameter.

    mssql-django uses a temporary table, which two lists of one query would share.
    """
    if connection.vendor != VENDOR:
        sql: tuple[str, list[Any]] = functions.in_split_parameter_list_as_sql(self, compiler, connection)
        return sql
    column, params = self.process_lhs(compiler, connection)
    _, values = self.batch_process_rhs(compiler, connection)
    kind = self.lhs.output_field.db_type(connection)
    listed = f"SELECT [value] FROM OPENJSON(%s) WITH ([value] {kind} '$')"  # noqa: S608  # the kind is a column's
    return f"{column} IN ({listed})", [*params, json.dumps(values)]


def as_literal(self: Exact | In, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
    """Write the values of columns such as `status` into the statement.

    SQL Server uses an index with a condition only if the statement has a literal that meets the condition.
    """
    sql, params = functions.sqlserver_lookup(self, compiler, connection)
    field = getattr(self.lhs, "target", None)
    if field is not None and params and field.name in _in_conditions(field.model):
        return sql % tuple(map(literal, params)), ()
    return sql, params


@cache
def _in_conditions(model: type[models.Model]) -> frozenset[str]:
    """Return the names of the columns with few values that occur in the conditions of the model's indexes."""
    indexes = [*model._meta.indexes, *model._meta.constraints]
    conditions = [index.condition for index in indexes if isinstance(index, models.Index | models.UniqueConstraint)]
    names = {name for condition in conditions if condition for name in condition.referenced_base_fields}
    fields = map(model._meta.get_field, names)
    return frozenset(field.name for field in fields if isinstance(field, models.CharField | models.BooleanField))


def install() -> None:
    In.split_parameter_list_as_sql = long_list  # type: ignore[method-assign]  # as mssql-django does
    for lookup in (Exact, In):
        # Django calls this method on databases of the vendor `microsoft` only.
        lookup.as_microsoft = as_literal  # type: ignore[union-attr]  # mssql-django adds it
