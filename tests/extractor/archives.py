"""Hand-made office files: archives with any parts, and a workbook in the older format."""

import io
import struct
import zipfile

CONTENT_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels"'
    ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml"'
    ' ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONSHIPS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1"'
    ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    ' Target="word/document.xml"/></Relationships>'
)
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"


def archive(parts, compression=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return file.getvalue()


def docx_of(body, *, head="", **more):
    document = f'{head}<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    parts = {"[Content_Types].xml": CONTENT_TYPES, "_rels/.rels": RELATIONSHIPS, "word/document.xml": document}
    return archive(parts | more)


def paragraph(text):
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def ods_of(rows, *, head="", **more):
    cells = (
        "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>' for cell in row
        )
        for row in rows
    )
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
    names = "".join(f' xmlns:{name}="{OFFICE}{name}:1.0"' for name in ("office", "table", "text"))
    content = (
        f"{head}<office:document-content{names}><office:body><office:spreadsheet>"
        f'<table:table table:name="Numbers">{table}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    return archive({"mimetype": mimetype, "content.xml": content, "META-INF/manifest.xml": manifest} | more)


def xls_of(sheets, *, more_globals=b""):
    """Return a workbook; each sheet is a dictionary from cell position to value."""
    bodies = []
    for cells in sheets.values():
        records = [_record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 0))]
        for (row, column), value in cells.items():
            if isinstance(value, str):
                text = value.encode("utf-16-le")
                records.append(_record(0x204, struct.pack("<HHHHB", row, column, 0, len(value), 1) + text))
            else:
                records.append(_record(0x203, struct.pack("<HHHd", row, column, 0, value)))
        bodies.append(b"".join(records) + _record(0x0A))
    return compound({"Workbook": _globals(list(sheets), bodies, more_globals) + b"".join(bodies)})


def _globals(names, bodies, more):
    start = _record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0)) + more
    size = len(start) + sum(4 + 8 + 2 * len(name) for name in names) + 4
    sheets = b""
    for index, name in enumerate(names):
        place = size + sum(map(len, bodies[:index]))
        sheets += _record(0x85, struct.pack("<IBBBB", place, 0, 0, len(name), 1) + name.encode("utf-16-le"))
    return start + sheets + _record(0x0A)


def _record(kind, data=b""):
    return struct.pack("<HH", kind, len(data)) + data


END, FREE, TABLE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def compound(streams):
    """Return a compound file, the format of Office before 2007: a file system with sectors of 512 bytes."""
    sectors, table, entries = [b"", b""], [TABLE, END], [_entry("Root Entry", 5, END, 0, child=1)]
    for number, (name, data) in enumerate(streams.items(), 1):
        # Streams below 4096 bytes would be stored in another place.
        data = data.ljust(4096, b"\0")
        pieces = [data[at : at + 512].ljust(512, b"\0") for at in range(0, len(data), 512)]
        following = number + 1 if number < len(streams) else FREE
        entries.append(_entry(name, 2, len(sectors), len(data), right=following))
        table += [*range(len(sectors) + 1, len(sectors) + len(pieces)), END]
        sectors += pieces
    sectors[0] = struct.pack("<128I", *table, *[FREE] * (128 - len(table)))
    sectors[1] = b"".join(entries).ljust(512, b"\0")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6xIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, END, 0, END, 0)
    return header + struct.pack("<109I", 0, *[FREE] * 108) + b"".join(sectors)


def _entry(name, kind, start, size, *, child=FREE, right=FREE):
    named = (name + "\0").encode("utf-16-le")
    head = named.ljust(64, b"\0") + struct.pack("<HBBIII", len(named), kind, 1, FREE, right, child)
    return head + bytes(36) + struct.pack("<IQ", start, size)
