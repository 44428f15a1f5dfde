"""A headless Chromium that no test page can leave: its windows, what it asked for, and what axe-core finds."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

DESKTOP, PHONE = (1280, 800), (400, 800)
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
SCRIPT_TIMEOUT_S = 180
"""axe takes its time on a long page."""


@contextmanager
def chromium(reachable: str = "") -> Iterator[Any]:
    """Start a browser that resolves no name but this one: the machine is cut off. Without one, a build fails."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (binary and driver):
        reason = "needs chromium and chromedriver; install both to run it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.add_argument(f"--host-resolver-rules=MAP * ~NOTFOUND{reachable and f', EXCLUDE {reachable}'}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    session = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    session.set_script_timeout(SCRIPT_TIMEOUT_S)
    try:
        yield session
    finally:
        session.quit()


def resize(browser: Any, size: tuple[int, int]) -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def settle(browser: Any) -> None:
    """Wait until what the script asked for is drawn."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )


def visit(browser: Any, address: str, size: tuple[int, int] = DESKTOP) -> None:
    """Open a page in a window of that size, with nothing in the logs from before."""
    resize(browser, size)
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(address)
    settle(browser)


def requested(browser: Any) -> list[str]:
    """Return the addresses asked for since the last call."""
    entries = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [e["params"]["request"]["url"] for e in entries if e["method"] == "Network.requestWillBeSent"]


def violations(
    browser: Any, *, within: str = "html", least: int = 15, iframes: bool = True
) -> list[tuple[str, str, list[str]]]:
    """Return what axe-core finds wrong, with its impact and the elements; more rules than this have to pass."""
    browser.execute_script((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found, passed = browser.execute_async_script(
        "const done = arguments[2]; axe.run(arguments[0], { iframes: arguments[1] })"
        ".then(({ violations, passes }) => done([violations, passes.length]));",
        within,
        iframes,
    )
    assert passed > least
    return [(one["id"], one["impact"], [node["html"] for node in one["nodes"]]) for one in found]


def screenshot(browser: Any) -> np.ndarray:
    """Return what is seen, shape (height, width, 3), as whole numbers up to 255."""
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(browser.get_screenshot_as_png()))[..., :3]
    return (pixels * 255).round().astype(int)


def shades(pixels: np.ndarray) -> int:
    """Return how many colours a picture has."""
    return len(np.unique(pixels.reshape(-1, 3), axis=0))
