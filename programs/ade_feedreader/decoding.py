"""Decodes feeds. Many declare an encoding that they do not use, so the declaration is only one hint."""

import codecs
import re

from charset_normalizer import from_bytes

# Encodings that a feed may declare. Python knows others that are not text encodings or are slow.
_NAMEABLE = re.compile(
    r"utf-(8|16|32).*|us-ascii|ascii|latin-?1|iso-?8859-\d+|iso2022[-_]\w+|windows-\d+|cp\d+|koi8-\w|mac-\w+"
    r"|gb\w+|big5\w*|euc[-_]\w+|shift_jis\w*|hz"
)
# Texts in these encodings consist of ASCII bytes, so UTF-8 would decode them without an error.
_OF_SEVEN_BITS = ("iso2022", "hz")
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Start of `<?` or `{"` in UTF-16 without a byte order mark.
_WIDE = {b"<\0?\0": "utf-16-le", b"\0<\0?": "utf-16-be", b'{\0"\0': "utf-16-le", b'\0{\0"': "utf-16-be"}
_DECLARED = re.compile(rb"""^\s{0,100}<\?xml[^>]{0,200}?encoding\s{0,10}=\s{0,10}["']([^"'>]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s{0,10}=\s{0,10}["']?([\w.:-]{1,40})""", re.IGNORECASE)
# Bytes used for guessing. More would take longer and not improve the guess.
SAMPLE_BYTES = 32 << 10
_NOT_ASCII = re.compile("[^\x00-\x7f\ufffd]")
# Characters that XML does not allow. A parser would stop at the first one and lose the rest.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def decode(data: bytes, content_type: str) -> str:
    text = _decode(data, content_type)
    return _NOT_IN_XML.sub(" ", text) if _NOT_IN_XML.search(text) else text


def _decode(data: bytes, content_type: str) -> str:
    marked = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None) or _WIDE.get(data[:4])
    if marked:
        return data.decode(marked, "replace")
    declared = []
    if match := _DECLARED.match(data[:1024]):
        declared.append(_known_encoding(match[1].decode("ascii", "replace")))
    if header_match := _CHARSET.search(content_type):
        declared.append(_known_encoding(header_match[1]))
    names = [name for name in declared if name]
    # A declared seven-bit encoding comes first: hardly any other text decodes as one.
    first = [name for name in names if name.startswith(_OF_SEVEN_BITS)]
    for name in [*first, "utf-8", *names]:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    text = data.decode(errors="replace")
    # Mostly valid UTF-8 is UTF-8 with a few damaged bytes.
    if len(_NOT_ASCII.findall(text)) > 4 * text.count("\ufffd"):
        return text
    wrong = {"utf-8", "utf-16", "utf-32", "ascii"}
    best = from_bytes(data[:SAMPLE_BYTES]).best()
    # UTF-8 and the others in `wrong` have been ruled out, also as guesses from a sample that is cut off or damaged.
    likely = [*names, *([best.encoding] if best else [])]
    return data.decode(next((name for name in likely if name not in wrong), "cp1252"), "replace")


def _known_encoding(declared: str) -> str | None:
    try:
        name = codecs.lookup(declared.strip()).name
    except (LookupError, ValueError):
        return None
    if not _NAMEABLE.fullmatch(name):
        return None
    # Each replacement is a superset of the declared encoding and what the feeds actually use.
    return {"iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}.get(name, name)
