"""Pictures of a run's report, for the documentation: `python docs/screenshots.py RUN`.

Writes report-light.png, report-dark.png and report-narrow.png beside this file. It needs the extra
`dev` and the machine's own Chromium or Chrome; no browser is downloaded.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import typer
from playwright.sync_api import Browser, sync_playwright

from heedful.api.run import Run

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SHOTS: dict[str, tuple[int, int, Literal["light", "dark"]]] = {  # width, height, side
    "light": (1280, 1600, "light"),
    "dark": (1280, 1600, "dark"),
    "narrow": (390, 1200, "light"),
}
MOST_BYTES = 400_000  # they are kept in the repository


def main(run: Path) -> None:
    """Take the top of the report of RUN in light, dark and narrow."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit(f"No browser: install chromium or Chrome, as one of {BROWSERS}.")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Run(run).report(Path(folder) / "report.html")
        # the sandbox needs rights that containers lack; all it would open is our own file
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=found, args=flags)
        for name in SHOTS:
            path = Path(__file__).parent / f"report-{name}.png"
            taken = shot(browser, page.as_uri(), name)
            if len(taken) > MOST_BYTES:
                raise SystemExit(f"{path.name} would have {len(taken)} bytes: lower its height.")
            path.write_bytes(taken)
            typer.echo(f"{path} ({len(taken) // 1000} KB)")
        browser.close()


def shot(browser: Browser, address: str, name: str) -> bytes:
    """One picture of the page, as PNG."""
    width, height, side = SHOTS[name]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=side)
    page.goto(address)
    return page.screenshot()


if __name__ == "__main__":
    typer.run(main)
