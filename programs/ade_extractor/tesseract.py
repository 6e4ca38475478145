"""Recognises text with tesseract, a system program, in its installed languages."""

import resource
import signal
import subprocess
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ade_extractor.lines import Fragment, Word, order, text_of, words_of
from ade_extractor.ocr import GreyPicture, OcrResult
from ade_extractor.trouble import LONGEST_DETAIL, malformed, too_large

# Small print takes half of it. Pictures without text may take minutes.
CPU_SECONDS = 8
# Each language takes time. If more are installed, all of them probably are, and only English is used.
MOST_LANGUAGES = 4
# Language data that detects the orientation of a page.
_ORIENTATION = "osd"
# Lines with a lower average confidence are dropped.
LEAST_CONFIDENCE = 50
_IS_WORD = "5"


class Item(NamedTuple):
    """A line of tesseract's output."""

    level: str
    # The numbers of the page, block, paragraph, line and word.
    numbers: tuple[int, ...]
    left: int
    top: int
    width: int
    height: int
    confidence: float
    text: str

    @property
    def center(self) -> complex:
        return complex(self.left + self.width / 2, self.top + self.height / 2)

    def box(self, width: int, height: int) -> tuple[float, float, float, float]:
        right, bottom = self.left + self.width, self.top + self.height
        return self.left / width, self.top / height, right / width, bottom / height


def read_image(path: Path, content_type: str, index: int) -> OcrResult:
    return _read(str(path), "-c", f"tessedit_page_number={index}")


def read_picture(picture: GreyPicture) -> OcrResult:
    rows = (picture.data[at : at + picture.width] for at in range(0, picture.stride * picture.height, picture.stride))
    return _read("stdin", data=b"P5 %d %d 255\n" % (picture.width, picture.height) + b"".join(rows))


def _read(source: str, *options: str, data: bytes = b"") -> OcrResult:
    languages = _languages()
    command = ["tesseract", source, "stdout", "-c", "tessedit_create_tsv=1", *options]
    command += ["--psm", "1"] if _ORIENTATION in languages else []
    if spoken := [name for name in languages if name != _ORIENTATION][: MOST_LANGUAGES + 1]:
        command += ["-l", "+".join(spoken) if len(spoken) <= MOST_LANGUAGES else "eng"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        resource.prlimit(program.pid, resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        output, errors = program.communicate(data)
    if program.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return OcrResult("tesseract", is_whole=False)
    if program.returncode < 0:
        raise too_large("This image", "recognising it needs more memory than allowed", "Save it in a smaller size.")
    if program.returncode:
        detail = errors.decode(errors="replace").strip()[-LONGEST_DETAIL:]
        raise malformed("This image", f"Tesseract failed ({detail})")
    items = []
    for tsv_row in output.decode(errors="replace").splitlines()[1:]:
        level, *numbers, percent, text = tsv_row.split("\t", 11)
        *places, left, top, width, height = map(int, numbers)
        items.append(Item(level, tuple(places), left, top, width, height, float(percent), text))
    width, height = items[0].width, items[0].height
    words = (each for each in items if each.level == _IS_WORD and each.text.strip())
    lines = [list(line) for _, line in groupby(words, key=lambda word: word.numbers[:-1])]
    sure = [line for line in lines if _mean([word.confidence for word in line]) >= LEAST_CONFIDENCE]
    # The direction of the text: vertical if the page lies on its side.
    total = sum((line[-1].center - line[0].center for line in sure), 0j)
    along = total / abs(total) if total else 1 + 0j
    fragments = []
    for line in sure:
        # Turn the page so that its text is level.
        centers = [word.center / along for word in line]
        tallest = max(abs((complex(word.width, word.height) / along).imag) for word in line)
        texts = [Word(word.text, word.box(width, height)) for word in line]
        fragments.append(Fragment(centers[0].real, _mean([center.imag for center in centers]), tallest, texts))
    rows = order(fragments)
    confidences = [word.confidence / 100 for line in sure for word in line]
    confidence = round(_mean(confidences), 4) if confidences else None
    return OcrResult("tesseract", text_of(rows), words_of(rows), confidence)


@cache
def _languages() -> list[str]:
    output = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, check=True).stdout
    return output.split("\n")[1:-1]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
