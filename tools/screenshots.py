"""Take the pictures of README and docs: run `make screenshots` while `make up` is running.

The pictures show the demo workspace and are named after their pages. This uses the system's Chromium.
"""

import argparse
import shutil
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Page, sync_playwright

WHERE = Path(__file__).resolve().parent.parent / "docs" / "pictures"
# Name, path, width, height, colour scheme.
PICTURES: tuple[tuple[str, str, int, int, Literal["light", "dark"]], ...] = (
    ("overview", "/", 1200, 800, "light"),
    ("overview-phone", "/", 375, 720, "dark"),
    ("run", "/runs/1/", 1200, 900, "light"),
    ("document", "/documents/1/", 1200, 900, "light"),
    ("job", "/jobs/rss_ingestion/", 1200, 800, "dark"),
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--address", default="http://127.0.0.1:8000")
    asked.add_argument("--user", default="demo")
    asked.add_argument("--password", required=True, help="password that `make up` printed")
    given = asked.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is not on the PATH. Install it and try again.")
    WHERE.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name, path, width, height, scheme in PICTURES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            _sign_in(page, given.address, given.user, given.password)
            page.goto(given.address + path)
            page.wait_for_timeout(500)
            file = WHERE / f"{name}.png"
            page.screenshot(path=file)
            # A third of the size.
            Image.open(file).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(file, optimize=True)
            print(file)
            page.close()
        browser.close()


def _sign_in(page: Page, address: str, user: str, password: str) -> None:
    page.goto(f"{address}/sign-in/")
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{address}/")


if __name__ == "__main__":
    main()
