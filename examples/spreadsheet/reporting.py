"""Reports tables and their changes, for programs and for people."""

from dataclasses import asdict, dataclass
from typing import Any

from cleaning import Changes
from tables import Table

MISFITS_TO_SHOW = 20


@dataclass(frozen=True)
class Output:
    """A table, its changes, and the name of the file with its rows."""

    table: Table
    changes: Changes
    file: str


def for_programs(output: Output) -> dict[str, Any]:
    table, changes = output.table, output.changes
    return {
        "sheet": table.sheet.name,
        "read_as": table.sheet.how,
        "file": output.file,
        "titles": table.titles,
        "header_row": table.header_row,
        "rows": table.rows,
        "dropped": {"empty_rows": table.empty_rows, "empty_columns": table.empty_columns},
        "columns": [
            {
                "column": column.letters,
                "name": column.name,
                "original_name": column.original_name,
                "type": column.kind,
                "filled": column.filled,
                "misfits": changes.misfits_by_column[column.name],
            }
            for column in table.columns
        ],
        "changes": dict(changes.counts),
        "misfits": [asdict(misfit) for misfit in changes.misfits],
    }


def for_people(output: Output) -> str:
    table, changes = output.table, output.changes
    header = (
        f"header in row {table.header_row}" if table.header_row else "no header found: columns are named by letters"
    )
    lines = [
        f"Sheet “{table.sheet.name}” ({table.sheet.how}) → {output.file}",
        f"  {table.rows} rows, {len(table.columns)} columns; {header}",
    ]
    if table.titles:
        lines.append(f"  lines above the table, left out: {' / '.join(table.titles)}")
    if table.empty_rows or table.empty_columns:
        lines.append(f"  dropped: empty rows {table.empty_rows}, empty columns {table.empty_columns}")
    lines += [f"  {what}: {count}" for what, count in changes.counts.items() if count]
    for column in table.columns:
        line = f"  {column.letters}: {column.name}"
        if column.name != column.original_name:
            line += f" (was “{column.original_name}”)"
        line += f": {column.kind}, {column.filled} filled"
        if misfits := changes.misfits_by_column[column.name]:
            line += f", {misfits} that do not fit"
        if column.has_open_dates:
            line += "; day and month could be swapped"
        lines.append(line)
    for misfit in changes.misfits[:MISFITS_TO_SHOW]:
        lines.append(
            f"  {misfit.place}: “{misfit.column}” has the type {misfit.expected}, but this cell is “{misfit.found}”"
        )
    if (total := changes.misfits_by_column.total()) > MISFITS_TO_SHOW:
        lines.append(f"  … and {total - MISFITS_TO_SHOW} more; the first {len(changes.misfits)} are in report.json")
    return "\n".join(lines) + "\n"
