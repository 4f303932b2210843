"""As much of WebDriver (https://www.w3.org/TR/webdriver2/) as a test of one page needs."""
import base64
import json
import shutil
import subprocess
import time
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def is_installed():
    return all(shutil.which(name) for name in ("chromium", "chromedriver"))


class Browser:
    """Headless Chromium until the end of the with block."""

    def __init__(self, dark=False, width=1100, height=820):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        self.base = None
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.base = f"http://127.0.0.1:{int(line.rstrip().rstrip('.').rsplit(' ', 1)[1])}"
                break
        args = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                f"--window-size={width},{height}"] + (["--force-dark-mode"] if dark else [])
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = "/session/" + made["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            self._call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()

    def _call(self, method, path, body=None):
        request = urllib.request.Request(self.base + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]

    def open(self, url):
        self._call("POST", self.session + "/url", {"url": url})

    def run(self, script, *args):
        return self._call("POST", self.session + "/execute/sync", {"script": script, "args": args})

    def wait_for(self, script, *args, seconds=30):
        """The script's value once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.run(script, *args):
                return value
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {script}; the page: {self.run('return document.body.innerText')}")

    def _find(self, selector):
        return self._call("POST", self.session + "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def type(self, selector, text):
        self._call("POST", f"{self.session}/element/{self._find(selector)}/value", {"text": text})

    def click(self, selector):
        self._call("POST", f"{self.session}/element/{self._find(selector)}/click", {})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("GET", self.session + "/screenshot")))

    def complaints(self):
        """What the page's console has to say beyond remarks."""
        entries = self._call("POST", self.session + "/se/log", {"type": "browser"})
        return [e["message"] for e in entries if e["level"] == "SEVERE"]
