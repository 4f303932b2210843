#!/usr/bin/env python3
"""The web page in a real browser: chats with the bundled model, sees reasoning and answer, plays a tool, stops a
stream. Screenshots go to BRIAR_SCREENSHOTS (a folder; default: the working directory)."""
import json
import os
import sys
import tempfile
import unittest

import webdriver
from briar_command import TINY, briar
from server_process import Server, wait_for

SCREENSHOTS = os.environ.get("BRIAR_SCREENSHOTS", ".")
ENTER = "\ue007"
# A call of get_weather and, in the next request, the final answer.
CALL = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Paris\"}<|call|>"
FINAL = "<|channel|>final<|message|>It is sunny in Paris.<|return|>"


def text_of(selector):
    return f"return document.querySelector('{selector}')?.innerText"


class Page(unittest.TestCase):
    def ask(self, browser, question):
        browser.type("#prompt", question + ENTER)
        browser.wait_for("return document.querySelector('.message.user') && !document.querySelector('.busy')")

    def test_chat_with_reasoning(self):
        for dark in (False, True):
            with self.subTest(dark=dark), Server("--quiet", "--model", TINY) as server, webdriver.Browser(dark) as browser:
                browser.open(f"http://127.0.0.1:{server.port}/")
                browser.wait_for("return document.querySelector('#model').innerText == 'tiny-harmony'")
                self.assertEqual(browser.run("return matchMedia('(prefers-color-scheme: dark)').matches"), dark)
                browser.click("#settings-button")
                browser.type("#temperature", "0")
                browser.click("#settings-button")
                self.ask(browser, "What is the capital of France?")
                self.assertIn("Paris", browser.run(text_of(".answer")))
                browser.run("document.querySelector('.reasoning').open = true")
                self.assertIn("capital of France", browser.run(text_of(".reasoning div")))
                self.assertIn("tokens/s", browser.run(text_of(".note")))
                browser.wait_for("return Number(document.querySelector('#gauge-running').innerText) === 0")
                self.ask(browser, "What is 17 plus 25?")
                self.assertEqual(browser.run("return document.querySelectorAll('.answer').length"), 2)
                browser.screenshot(os.path.join(SCREENSHOTS, f"page-{'dark' if dark else 'light'}.png"))
                self.assertEqual(browser.complaints(), [])

    def test_tools_and_key(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("".join(json.dumps({"tokens": encode(text)}) + "\n" for text in (CALL, FINAL)))
            file.flush()
            with Server("--engine", "scripted:" + file.name, "--api-key", "sesame") as server, \
                    webdriver.Browser() as browser:
                browser.open(f"http://127.0.0.1:{server.port}/")
                self.ask(browser, "Hello")
                self.assertIn("API key", browser.run(text_of(".fault")))
                browser.click("#settings-button")
                browser.type("#api-key", "sesame")
                browser.type("#tools", json.dumps([{"type": "function", "function": {
                    "name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]))
                browser.click("#new-chat")
                self.ask(browser, "Weather in Paris?")
                self.assertEqual(browser.run(text_of(".call b")), "get_weather")
                self.assertIn("Paris", browser.run(text_of(".call pre")))
                browser.type(".call textarea", "sunny")
                browser.click(".call form button")
                browser.wait_for("return [...document.querySelectorAll('.answer')].some(a => a.innerText.includes('sunny in Paris'))")
                browser.wait_for("return document.querySelector('#model').innerText == 'scripted'")

    def test_stop_button(self):
        with Server("--engine", "scripted:loop") as server, webdriver.Browser() as browser:
            browser.open(f"http://127.0.0.1:{server.port}/")
            browser.type("#prompt", "Go on" + ENTER)
            browser.wait_for("return document.querySelector('.answer')?.innerText.length > 20")
            browser.wait_for("return Number(document.querySelector('#gauge-running').innerText) === 1")
            browser.wait_for("return Number(document.querySelector('#gauge-rate').innerText) > 10")
            browser.click("#stop")
            browser.wait_for("return document.querySelector('.fault')?.innerText == 'stopped'")
            self.assertIsNotNone(wait_for(lambda: server.gauges()["running"] == 0, 1))


def encode(text):
    """Ids of text with special tokens, which only the tokenize command gives."""
    run = briar("tokenize", "--jsonl", "-", "--specials", stdin=json.dumps({"text": text}) + "\n")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["ids"]


if __name__ == "__main__":
    if not webdriver.is_installed():
        print("chromium and chromedriver are not installed: nothing tested")
        # In continuous integration setup.sh installs them, where the distribution has them.
        sys.exit(1 if os.environ.get("CI") and "ID=debian" in open("/etc/os-release").read().split() else 77)
    unittest.main()
