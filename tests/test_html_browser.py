"""The page and the picture in a real browser: no error, no request, readable in every setting.

Chromium is driven over its debugging pipe, the DevTools protocol: messages are JSON, each ended by
a zero byte, on the browser's descriptors 3 and 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ckptcli.measure.rounds import Plan
from ckptcli.profiling.profile import profile
from ckptcli.report.formats import exporter_for
from ckptcli.workloads.silu import SiluWorkload
from tests.test_formats import RECORDS, derived_anew

CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no `chromium` on the path"),
]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)
TIMEOUT_S = 60.0


class Browser:
    """One headless Chromium with one tab."""

    def __init__(self, profile_directory: Path) -> None:
        to_browser, self._writing = os.pipe()
        self._reading, from_browser = os.pipe()
        # Clear of 3 and 4, which they are copied to in the shell below.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
        command = f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, str(CHROMIUM), *FLAGS, f"--user-data-dir={profile_directory}"],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._buffer = b""
        self._last_id = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its result; events on the way are kept."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)

    def open(self, path: Path) -> None:
        """Load a file and wait until all of it is there."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not self.named("Page.loadEventFired"):
            self.events.append(self._receive())

    def named(self, method: str) -> list[dict[str, Any]]:
        """The parameters of each event of this name since the file was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"][
            "value"
        ]

    def look(self, *, dark: bool = False, width: int = 1100, height: int = 1400) -> bytes:
        """A screenshot as PNG."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        """End the browser that this object started."""
        os.close(self._writing)  # without its pipe it quits
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._reading)

    def _receive(self) -> dict[str, Any]:
        end_s = time.monotonic() + TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, end_s - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._reading, 1 << 16)
            assert chunk, "the browser has quit"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


def write(directory: Path, name: str, record_name: str) -> Path:
    content = exporter_for(name, None).render(RECORDS[record_name])
    assert isinstance(content, str)
    path = directory / name
    path.write_bytes(content.encode())
    return path


@pytest.fixture(
    params=["two strategies", "nasty names", "many strategies", "no samples", "other engines"]
)
def page(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path) -> Browser:
    browser.look()
    browser.open(write(tmp_path, "report.html", request.param))
    return browser


def assert_quiet(browser: Browser) -> None:
    """Nothing went wrong and nothing but the file was asked for."""
    assert browser.named("Log.entryAdded") == []
    assert browser.named("Runtime.exceptionThrown") == []
    assert browser.named("Runtime.consoleAPICalled") == []
    assert browser.named("Network.loadingFailed") == []
    asked = [event["request"]["url"] for event in browser.named("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith("data:")] == [
        browser.evaluate("location.href")
    ]


def test_the_page_opens_without_error_or_request(page: Browser) -> None:
    page.look()
    assert_quiet(page)
    assert page.evaluate("document.scripts.length") == 0
    assert page.evaluate("document.compatMode") == "CSS1Compat"


def test_the_page_is_narrow_enough_for_a_phone(page: Browser) -> None:
    for width in (1100, 390):
        page.look(width=width)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["two strategies", "other engines", "one gradient"])
def test_tables_fit_a_screen_of_1280_pixels(browser: Browser, tmp_path: Path, name: str) -> None:
    browser.look(width=1280)
    browser.open(write(tmp_path, "report.html", name))
    wider = "[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth)"
    assert browser.evaluate("document.querySelectorAll('.wide table').length") > 0
    assert browser.evaluate(f"{wider}.length") == 0


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_of_a_row_can_be_read(browser: Browser, tmp_path: Path, dark: bool) -> None:
    rows = RECORDS["many strategies"].rows
    twelve = [replace(rows[i % 2], strategy=f"s{i}", reference=i == 0) for i in range(12)]
    record = derived_anew(RECORDS["many strategies"], *twelve)
    path = tmp_path / "report.html"
    path.write_text(str(exporter_for("report.html", None).render(record)), encoding="utf-8")
    browser.look(dark=dark)
    browser.open(path)
    contrast = browser.evaluate(CONTRAST)
    assert contrast["worst"] >= 4.5, contrast


def test_the_picture_opens_alone(browser: Browser, tmp_path: Path) -> None:
    browser.open(write(tmp_path, "timeline.svg", "nasty names"))
    picture = browser.look(width=820, height=420)
    assert_quiet(browser)
    assert_drawn(picture, 820, 420)
    assert browser.evaluate("document.querySelectorAll('title').length") == 25


def test_a_person_can_read_it_in_light_and_dark(browser: Browser, tmp_path: Path) -> None:
    record = profile(SiluWorkload(8, 16), plan=Plan(reps=9))
    (tmp_path / "report.html").write_text(
        str(exporter_for("report.html", None).render(record)), encoding="utf-8"
    )
    browser.open(tmp_path / "report.html")
    for dark in (False, True):
        assert_drawn(browser.look(dark=dark), 1100, 1400)
        contrast = browser.evaluate(CONTRAST)
        assert contrast["count"] > 100
        assert contrast["worst"] >= 4.5, contrast
    shown = browser.evaluate("document.body.innerText")
    for text in (
        "balanced",
        "effective",
        "Live bytes over the pass",
        "Samples",
        "Time against peak",
        "Machine",
    ):
        assert text in shown


def assert_drawn(picture: bytes, width: int, height: int) -> None:
    """A PNG of this size on which something is: rows whose pixels differ from their neighbours."""
    assert struct.unpack(">II", picture[16:24]) == (width, height)
    data, position = b"", 8
    while position < len(picture):
        (length,) = struct.unpack(">I", picture[position : position + 4])
        if picture[position + 4 : position + 8] == b"IDAT":
            data += picture[position + 8 : position + 8 + length]
        position += length + 12
    differences = zlib.decompress(data)  # of one colour they would be zeros, but for the first
    assert len(differences) - differences.count(0) > len(differences) // 200


CONTRAST = """(() => {
  const parse = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  let worst = 21, where = '', count = 0;
  for (const element of document.body.querySelectorAll('*')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || element.tagName === 'title') continue;
    const style = getComputedStyle(element);
    const ink = light(parse(element.tagName === 'text' ? style.fill : style.color));
    const paper = light(parse(String(behind(element))));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    count += 1;
    if (ratio < worst) { worst = ratio; where = element.outerHTML.slice(0, 200); }
  }
  return {worst, where, count};
})()"""
