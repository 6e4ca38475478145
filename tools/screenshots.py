"""Take the pictures of README and docs: run `make screenshots` while `make up` is running.

The pictures show the demo workspace and are named after the pages. Needs Chromium on this system.
"""

import argparse
import shutil
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
# Name of the picture, path of the page, width, height, colour scheme.
PICTURES: tuple[tuple[str, str, int, int, Literal["light", "dark"]], ...] = (
    ("overview", "/", 1200, 800, "light"),
    ("overview-phone", "/", 375, 720, "dark"),
    ("run", "/runs/1/", 1200, 900, "light"),
    ("document", "/documents/1/", 1200, 900, "light"),
    ("job", "/jobs/rss_ingestion/", 1200, 800, "dark"),
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="demo")
    parser.add_argument("--password", required=True, help="password that `make up` printed")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is not on the PATH. Install it and try again.")
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, path, width, height, scheme in PICTURES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(f"{options.address}/sign-in/")
            page.get_by_label("Username").fill(options.user)
            page.get_by_label("Password").fill(options.password)
            page.get_by_role("button", name="Sign in", exact=True).click()
            page.wait_for_url(f"{options.address}/")
            page.goto(options.address + path)
            page.wait_for_timeout(500)
            file = FOLDER / f"{name}.png"
            page.screenshot(path=file)
            # Reducing the image to 64 colours makes the file three times smaller.
            Image.open(file).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(file, optimize=True)
            print(file)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
