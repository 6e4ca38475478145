"""Decodes bytes into text, and cleans text for storage."""

import codecs
import re

from charset_normalizer import from_bytes

from ade_extractor.trouble import malformed

# Encodings that a file may declare. Python knows others that are not text encodings or are slow.
_NAMEABLE = re.compile(
    r"utf-(8|16|32).*|us-ascii|ascii|latin-?1|iso-?8859-\d+|iso2022-\w+|windows-\d+|cp\d+|koi8-\w|mac-\w+"
    r"|gb\w+|big5\w*|euc-\w+|shift_jis\w*|hz"
)
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Bytes used for guessing. More would take longer and not improve the guess.
SAMPLE_BYTES = 64 << 10
# Control characters, which text lacks. Binary files that pass for an old encoding consist of them to a third.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
MOST_CONTROLS = 0.05
FEW_CONTROLS = 4
# Asian multi-byte encodings, and the shortest average run of high bytes in their texts.
_ASIAN = ("gb", "big5", "euc", "shift", "johab", "hz", "iso2022", "cp9")
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
SHORTEST_RUN = 1.8
_NOT_ASCII = re.compile("[^\x00-\x7f\ufffd]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Normalise line ends and remove characters that databases refuse. The Unicode normal form is kept."""
    if _SURROGATE.search(text):
        # Join surrogate pairs and drop lone halves.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\0", "")


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode by byte order mark, declared encoding, UTF-8, or the best guess.

    Raises Trouble if the bytes are not text.
    """
    text = _decode(data, declared)
    sample = text[:SAMPLE_BYTES]
    if len(_CONTROLS.findall(sample)) > max(FEW_CONTROLS, MOST_CONTROLS * len(sample)):
        raise malformed("This text", "its bytes are not text in any encoding", "Upload it with its own extension.")
    return clean(text)


def _decode(data: bytes, declared: str | None) -> str:
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if name := known_encoding(declared):
        return data.decode(name, "replace")
    sample = data[:SAMPLE_BYTES]
    half = len(sample) // 2
    if half >= FEW_CONTROLS:
        # Every other byte of Western text in UTF-16 is zero, which shows without a byte order mark.
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if odd > 0.3 * half and even < 0.05 * half:
            return data.decode("utf-16-le", "replace")
        if even > 0.3 * half and odd < 0.05 * half:
            return data.decode("utf-16-be", "replace")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        # The data is cut off within its last character.
        if error.start >= len(data) - 3:
            return data.decode(errors="ignore")
    text = sample.decode(errors="replace")
    # Hardly any text in another encoding contains valid UTF-8 characters.
    is_utf8 = len(_NOT_ASCII.findall(text)) > 4 * text.count("\ufffd")
    best = None if is_utf8 else from_bytes(sample).best()
    if best is None:
        return data.decode("utf-8", "replace")
    runs = _HIGH_BYTES.findall(sample)
    # Short Western texts are often mistaken for Asian ones.
    is_western = best.encoding.startswith(_ASIAN) and sum(map(len, runs)) < SHORTEST_RUN * len(runs)
    return data.decode("cp1252" if is_western else best.encoding, "replace")


def known_encoding(declared: str | None) -> str | None:
    if not declared or len(declared) > 40:
        return None
    try:
        name = codecs.lookup(declared.strip()).name
    except (LookupError, ValueError):
        return None
    return name if _NAMEABLE.fullmatch(name) else None
