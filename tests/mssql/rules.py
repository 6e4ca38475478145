"""Documented rules of SQL Server that a parser does not know. Each has the number of the server's error, if it has one.

`broken(sql)` parses a statement with sqlglot, which knows T-SQL independently of Django, and returns what is wrong.
"""

import re
from collections import Counter

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

MOST_PARAMETERS = 2100
# SQL Server has no fixed limit, but fails with longer lists (errors 8623 and 8632).
LONGEST_LIST = 1000
# Keywords and functions of the other databases. sqlglot accepts some of them.
FOREIGN = re.compile(
    r"\b(?:LIMIT|RETURNING|ILIKE|TRUE|FALSE|FOR (?:NO KEY )?UPDATE|SKIP LOCKED|ON CONFLICT|json_each|unnest)\b|::|\|\|",
    re.IGNORECASE,
)
# sqlglot keeps it as text.
KNOWN_COMMAND = re.compile(r"SET IDENTITY_INSERT \[\w+\] (?:ON|OFF)$")
TEXT = re.compile(r"'(?:[^']|'')*'")
CALL = re.compile(r"(?<![\]\w@.])(?<!\bAS )([A-Za-z_]\w*) ?\(")
# Words before a parenthesis that call nothing, and types with a length.
KEYWORDS = """
AND ANY AS BY CASE CHECK ELSE EXCEPT EXISTS FROM IDENTITY IN INCLUDE JOIN KEY NOT ON OPENJSON OR OVER REFERENCES SELECT
THEN UNION UNIQUE VALUES WHEN WHERE WITH CHAR FLOAT NVARCHAR VARBINARY VARCHAR
"""
FUNCTIONS = """
ABS AVG CAST COALESCE COLLATIONPROPERTY COLUMNPROPERTY COL_NAME CONCAT CONVERT COUNT COUNT_BIG DATEADD DATEDIFF
DATEDIFF_BIG DATEPART DB_NAME FLOOR ISNULL LAG JSON_PATH_EXISTS JSON_QUERY JSON_VALUE LEFT LEN LOWER LTRIM MAX MIN
NULLIF OBJECT_ID OBJECTPROPERTY OBJECT_NAME RANK REPLACE RIGHT ROUND ROW_NUMBER RTRIM SCHEMA_ID SCHEMA_NAME
SCOPE_IDENTITY SERVERPROPERTY SIGN STRING_AGG SUBSTRING SUM SYSDATETIME SYSDATETIMEOFFSET UPPER
"""
KNOWN = frozenset((KEYWORDS + FUNCTIONS).split())
PREDICATES = (exp.Predicate, exp.And, exp.Or, exp.Not, exp.Exists, exp.In, exp.Between)


def broken(sql: str) -> list[str]:
    plain = TEXT.sub("''", sql)
    found = [f"language of another database: {word}" for word in FOREIGN.findall(plain)]
    found += [f"no function of SQL Server: {name}" for name in CALL.findall(plain) if name.upper() not in KNOWN]
    if plain.count("%s") > MOST_PARAMETERS:
        found.append("8003: more than 2,100 parameters")
    # SQL Server needs no semicolon there, but sqlglot does.
    separated = plain.replace("SET NOCOUNT ON INSERT", "SET NOCOUNT ON; INSERT", 1)
    try:
        statements = sqlglot.parse(separated.replace("%s", "?").replace("%%", "%"), read="tsql")
    except ParseError as error:
        return [*found, f"102: {error.errors[0]['description']} at {error.errors[0]['highlight']!r}"]
    for statement in filter(None, statements):
        if isinstance(statement, exp.Command) and not KNOWN_COMMAND.match(statement.sql("tsql")):
            found.append(f"not understood: {statement.sql('tsql')[:80]}")
        for rule in RULES:
            found += [f"{rule.__doc__}: {node.sql('tsql')[:200]}" for node in rule(statement)]
    return found


def order_without_top(statement):
    """1033: ORDER BY in a subquery needs TOP or OFFSET"""
    for select in statement.find_all(exp.Select):
        is_inner = select.parent is not None and not isinstance(select.parent, exp.Insert)
        if is_inner and select.args.get("order") and not (select.args.get("limit") or select.args.get("offset")):
            yield select


def order_by_twice(statement):
    """169: a column occurs twice in ORDER BY"""
    for order in statement.find_all(exp.Order):
        counts = Counter(each.this.sql("tsql") for each in order.expressions)
        yield from [order] * (max(counts.values()) > 1)


def offset_without_order(statement):
    """102: OFFSET needs ORDER BY"""
    for select in statement.find_all(exp.Select):
        if select.args.get("offset") and not select.args.get("order"):
            yield select


def distinct_ordered_by_another(statement):
    """145: with DISTINCT, ORDER BY may only have what is selected"""
    for select in statement.find_all(exp.Select):
        if select.args.get("distinct") and select.args.get("order"):
            chosen = {part.sql("tsql") for each in select.expressions for part in (each, each.unalias())}
            chosen |= {f"[{each.alias}]" for each in select.expressions if each.alias}
            chosen |= {str(place) for place in range(1, len(select.expressions) + 1)}
            yield from (each for each in select.args["order"].expressions if each.this.sql("tsql") not in chosen)


def predicate_as_value(statement):
    """102: a condition is no value"""
    for select in statement.find_all(exp.Select):
        yield from (each for each in select.expressions if isinstance(each.unalias().unnest(), PREDICATES))
    for assigned in statement.find_all(exp.Update):
        yield from (each for each in assigned.expressions if isinstance(each.expression.unnest(), PREDICATES))


def value_as_condition(statement):
    """4145: a value is no condition"""
    conditions = [node.this for kind in (exp.Where, exp.Having, exp.Not) for node in statement.find_all(kind)]
    conditions += [node.args["on"] for node in statement.find_all(exp.Join) if node.args.get("on")]
    conditions += [node.this for case in statement.find_all(exp.Case) if not case.this for node in case.args["ifs"]]
    for node in statement.find_all(exp.And, exp.Or):
        conditions += [node.this, node.expression]
    for condition in conditions:
        bare = condition.unnest()
        if isinstance(bare, exp.Column | exp.Literal | exp.Placeholder | exp.Boolean | exp.Case):
            yield condition


def group_by_a_constant(statement):
    """164: GROUP BY needs a column"""
    for group in statement.find_all(exp.Group):
        yield from (each for each in group.expressions if not each.find(exp.Column))


def aggregate_of_a_query(statement):
    """130: an aggregate of a subquery or of another aggregate"""
    for aggregate in statement.find_all(exp.AggFunc):
        inner = aggregate.find(exp.Select) or next(
            (each for each in aggregate.find_all(exp.AggFunc) if each is not aggregate), None
        )
        yield from [aggregate] * (inner is not None)


def column_of_a_table_without_name(statement):
    """8155 and 8156: each column of a derived table needs a name of its own"""
    for table in statement.find_all(exp.Subquery):
        if isinstance(table.parent, exp.From | exp.Join) and isinstance(table.this, exp.Select):
            names = Counter(each.alias_or_name.lower() for each in table.this.expressions)
            if "" in names or max(names.values()) > 1:
                yield table


def long_list(statement):
    """8623: a list is too long"""
    yield from (node for node in statement.find_all(exp.In) if len(node.expressions) > LONGEST_LIST)


def json_of_a_scalar(statement):
    """547: ISJSON refuses a text and a number"""
    yield from (node for node in statement.find_all(exp.Anonymous) if node.name.upper() == "ISJSON")


def readpast_with_row_versions(statement):
    """650: with READ_COMMITTED_SNAPSHOT on, READPAST needs READCOMMITTEDLOCK"""
    for table in statement.find_all(exp.Table):
        hints = {hint.name.upper() for each in table.args.get("hints") or () for hint in each.expressions}
        if "READPAST" in hints and "READCOMMITTEDLOCK" not in hints:
            yield table


def name_in_two_cases(statement):
    """208: where case counts, it counts in names too"""
    spelled = {}
    if _catalog(statement):
        return
    for identifier in statement.find_all(exp.Identifier):
        if spelled.setdefault(identifier.name.lower(), identifier.name) != identifier.name:
            yield identifier


def catalog_in_another_case(statement):
    """207: where case counts, INFORMATION_SCHEMA is in capitals and sys is not"""
    catalog = _catalog(statement)
    for table in statement.find_all(exp.Table):
        name = f"{table.db}.{table.name}"
        if (table.alias_or_name in catalog and not name.isupper()) or (
            table.db.lower() == "sys" and not name.islower()
        ):
            yield table
    yield from (each for each in statement.find_all(exp.Column) if each.table in catalog and not each.name.isupper())


def _catalog(statement):
    return {each.alias_or_name for each in statement.find_all(exp.Table) if each.db.upper() == "INFORMATION_SCHEMA"}


def collation_of_its_own(statement):
    """468: a collation that is not the database's"""
    yield from statement.find_all(exp.Collate, exp.CollateColumnConstraint)


RULES = (
    order_without_top,
    order_by_twice,
    offset_without_order,
    distinct_ordered_by_another,
    predicate_as_value,
    value_as_condition,
    group_by_a_constant,
    aggregate_of_a_query,
    column_of_a_table_without_name,
    long_list,
    json_of_a_scalar,
    readpast_with_row_versions,
    name_in_two_cases,
    catalog_in_another_case,
    collation_of_its_own,
)
