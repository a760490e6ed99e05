"""The web view in Debian's Chromium, against a live kilnd that has trained something."""

import json
import pathlib
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from eventually import GIVE_UP_SECONDS
from kilnd_process import NO_PROBES, Kilnd, program

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER),
                                reason="Debian's packages chromium and chromium-driver are not installed")
TRAINING = """
import numpy as np
import kiln
from kiln import nn

model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = kiln.optim.Adam(model.parameters(), lr=1e-2)

@kiln.jit
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

x = kiln.tensor(np.random.default_rng(0).uniform(-1, 1, (256, 2)).astype(np.float32))
y = kiln.tensor(np.zeros(256, np.int64))
for _ in range(20):
    loss = step(x, y)
print(loss.item(), flush=True)
"""
# The session lives until its input ends, so that the table of users has a row.
TRAINING_THAT_STAYS = TRAINING + "import sys\nsys.stdin.read()\n"


def kiln(daemon: Kilnd, *arguments: str) -> str:
    """Returns the output of the command."""
    done = subprocess.run([program("clients/cli/kiln"), *arguments], env=daemon.environment(), capture_output=True, text=True,
                          timeout=GIVE_UP_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def trained(daemon: Kilnd, token: str | None = None) -> None:
    """Trains, as the user of the token if there is one."""
    environment = daemon.environment()
    if token:
        environment |= {"KILN_ADDRESS": daemon.tcp_address, "KILN_TOKEN": token}
    subprocess.run([sys.executable, "-c", TRAINING], env=environment, check=True, timeout=GIVE_UP_SECONDS)


def skip_without_view(daemon: Kilnd) -> None:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/web/", timeout=GIVE_UP_SECONDS)
    except urllib.error.HTTPError:
        pytest.skip("this kilnd was built without the web view: libjs-d3 or python3-xstatic-dagre is not installed")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Kilnd]:
    """A daemon with a session that has trained."""
    with Kilnd(threads=2, config=NO_PROBES) as running:
        skip_without_view(running)
        with subprocess.Popen([sys.executable, "-c", TRAINING_THAT_STAYS], env=running.environment(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as training:
            assert training.stdout is not None
            assert float(training.stdout.readline()) >= 0
            yield running
            training.communicate("")


class Browser:
    """A page in Chromium. Waits for what it looks for; how long that takes is not limited by the tests."""

    def __init__(self, daemon: Kilnd, folder: pathlib.Path):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM or ""
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000",
                         f"--user-data-dir={folder}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.set_page_load_timeout(GIVE_UP_SECONDS)
        self.driver.set_script_timeout(GIVE_UP_SECONDS)
        self.address = f"http://127.0.0.1:{daemon.metrics_port}"

    def open(self, path: str = "/") -> None:
        self.driver.get(self.address + path)

    def wait(self, condition: Callable[[], object]) -> object:
        """Returns the condition's result once it is true."""
        ignored = (IndexError, KeyError, AssertionError)
        return WebDriverWait(self.driver, GIVE_UP_SECONDS, 0.02, ignored_exceptions=ignored).until(lambda _: condition())

    def texts(self, selector: str) -> list[str]:
        """Returns the texts of all elements, at one moment."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(found => found.textContent)", selector)

    def find(self, selector: str) -> WebElement:
        self.wait(lambda: self.driver.find_elements(By.CSS_SELECTOR, selector))
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        """Clicks by script: an update may replace the element between finding and clicking it."""
        self.find(selector)
        self.driver.execute_script(
            "document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))", selector)

    def press(self, keys: str) -> None:
        ActionChains(self.driver).send_keys(keys).perform()

    def attribute(self, selector: str, name: str) -> str | None:
        return self.driver.execute_script("return document.querySelector(arguments[0])?.getAttribute(arguments[1])", selector, name)

    def complaints(self) -> list[str]:
        """Returns what the browser complained about since the last call: errors of scripts, refused files, broken rules of
        the content security policy. Other warnings change with its versions."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" or "Content Security Policy" in entry["message"] or "Refused to" in entry["message"]]

    def addresses(self) -> list[str]:
        """Returns the addresses of everything that the page has loaded."""
        return self.driver.execute_script("return performance.getEntries().map(entry => entry.name).filter(n => n.includes(':'))")


@pytest.fixture
def browser(daemon: Kilnd, tmp_path: pathlib.Path) -> Iterator[Browser]:
    made = Browser(daemon, tmp_path)
    yield made
    made.driver.quit()


def test_live_shows_devices_and_users(browser: Browser) -> None:
    browser.open()
    browser.wait(lambda: browser.texts("#users tbody td"))
    assert browser.driver.current_url.endswith("/web/")
    assert browser.texts("[data-device]")[0].startswith("cpu:0healthy")
    assert any("cpu:0" in text for text in browser.texts("#users tbody tr"))
    browser.wait(lambda: browser.texts("#running") == ["No program is running."])
    assert browser.complaints() == []
    assert all(address.startswith(browser.address) for address in browser.addresses())


def test_a_table_is_sorted(browser: Browser, daemon: Kilnd) -> None:
    browser.open("/web/#/programs")
    column = 'th[data-column="runs"]'
    runs = lambda: [int(text.replace(",", "")) for text in browser.texts('td[data-column="runs"]')]  # noqa: E731
    listed = sorted(int(row["runs"]) for row in json.loads(kiln(daemon, "--json", "programs"))["programs"])
    assert len(listed) > 1
    browser.click(f"{column} button")
    browser.wait(lambda: browser.attribute(column, "aria-sort") == "descending" and runs() == listed[::-1])
    browser.click(f"{column} button")
    browser.wait(lambda: browser.attribute(column, "aria-sort") == "ascending" and runs() == listed)
    assert browser.complaints() == []


def test_a_program_leads_from_its_graph_to_assembly(browser: Browser, daemon: Kilnd) -> None:
    browser.open("/web/#/programs")
    (step,) = [row for row in json.loads(kiln(daemon, "--json", "programs"))["programs"] if row["name"] == "step"]
    explained = json.loads(kiln(daemon, "--json", "explain", step["digest"]))
    browser.click(f'a[href="#/program/{step["digest"][:12]}"]')
    browser.wait(lambda: len(browser.texts("svg .node")) == step["kernels"])
    names = [kernel["name"] for kernel in explained["kernels"]]
    assert {title.rstrip("…") for title in browser.texts("svg .node .title")} <= {name[:33] for name in names} | set(names)
    assert browser.texts("svg .edges path")

    browser.click("svg .node")
    browser.wait(lambda: browser.texts(".pane code.assembly"))
    number, name = browser.texts("h1")[0].split()
    kernel = explained["kernels"][int(number) - 1]
    assert kernel["name"] == name
    assert browser.texts(".pane code.assembly") == [kernel["assembly"]]
    assert browser.texts(".pane code.source") == [kernel["source"]]
    browser.click('.pane [data-text="Loops"]')
    browser.wait(lambda: browser.texts(".pane code.loops") == [kernel["ir"]])
    assert browser.complaints() == []


def test_the_tensors_are_drawn(browser: Browser, daemon: Kilnd) -> None:
    (step,) = [row for row in json.loads(kiln(daemon, "--json", "programs"))["programs"] if row["name"] == "step"]
    graph = json.loads(kiln(daemon, "--json", "explain", step["digest"]))["graph"]
    nodes = [line.split() for line in graph.splitlines() if line.strip().startswith("%")]
    browser.open(f"/web/#/program/{step['digest'][:12]}/tensors")
    browser.wait(lambda: len(browser.texts("svg .node")) == sum(1 for words in nodes if words[2] != "const"))
    titles = browser.texts("svg .node .title")
    assert titles.count("input") == sum(1 for words in nodes if words[2] == "input")
    assert browser.complaints() == []


def test_passes_and_queue_are_shown(browser: Browser, daemon: Kilnd) -> None:
    (step,) = [row for row in json.loads(kiln(daemon, "--json", "programs"))["programs"] if row["name"] == "step"]
    browser.open(f"/web/#/program/{step['digest'][:12]}/passes")
    browser.wait(lambda: "cluster" in browser.texts(".part td"))
    browser.click('[data-part="queue"]')
    browser.wait(lambda: browser.texts(".part code") and browser.texts(".part code")[0].startswith("0: launch "))
    browser.click('[data-part="kernels"]')
    browser.wait(lambda: len(browser.texts('.part td[data-column="name"]')) == step["distinct_kernels"])
    assert browser.complaints() == []


def test_the_keyboard_is_enough(browser: Browser) -> None:
    browser.open()
    browser.wait(lambda: browser.texts("#users tbody td"))
    browser.press("3")
    browser.wait(lambda: len(browser.texts('td[data-column="name"]')) > 1)
    name = browser.texts('td[data-column="name"]')[0]
    browser.press("/")
    browser.press(name)
    browser.wait(lambda: set(browser.texts('td[data-column="name"]')) == {name})
    browser.press(Keys.TAB)
    assert browser.driver.switch_to.active_element.tag_name != "body"


def test_it_follows_the_readers_theme(browser: Browser) -> None:
    grounds = set()
    browser.open()
    for scheme in ("light", "dark"):
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        grounds.add(browser.driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def sign_in(browser: Browser, token: str) -> None:
    field = browser.find("#token")
    field.clear()
    field.send_keys(token + Keys.ENTER)


def test_a_token_opens_what_its_user_may_see(tmp_path: pathlib.Path) -> None:
    with Kilnd(threads=2, config=NO_PROBES) as daemon:
        skip_without_view(daemon)
        ann = kiln(daemon, "user", "add", "ann").split()[-1]
        viewer = kiln(daemon, "user", "add", "watch", "--role", "viewer").split()[-1]
        trained(daemon, ann)
        browser = Browser(daemon, tmp_path)
        try:
            browser.open("/web/#/programs")
            sign_in(browser, "kiln_made_up")
            browser.wait(lambda: browser.texts(".login [role=alert]") == ["The daemon does not accept this token."])
            sign_in(browser, ann)
            browser.wait(lambda: "step" in browser.texts('td[data-column="name"]'))
            assert browser.texts("#caller") == ["ann · user"]
            assert not any(ann in address for address in [*browser.addresses(), browser.driver.current_url])
            assert browser.driver.get_cookies() == []

            browser.click("#sign-out")
            sign_in(browser, viewer)
            browser.wait(lambda: "step" in browser.texts('td[data-column="name"]'))
            assert browser.texts("#caller") == ["watch · viewer"]
            # A viewer may not see graphs and code.
            browser.driver.execute_script("document.querySelector('td[data-column=name] a').click()")
            browser.wait(lambda: "requires the role user" in "".join(browser.texts("[role=alert]")))
        finally:
            browser.driver.quit()
