#!/usr/bin/env python3
"""briar chat: through a pipe, and on a terminal where Ctrl-C stops the answer and not the program."""
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from briar_command import BRIAR, TINY, briar

CHAT = ["chat", "--model", TINY, "--quiet", "--temperature", "0"]


class Pipe(unittest.TestCase):
    def talk(self, *lines, flags=()):
        return briar(*CHAT, *flags, stdin="".join(line + "\n" for line in lines))

    def test_answers_each_line_with_the_history_before_it(self):
        run = self.talk("What is the capital of France?", "Hello")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("The capital of France is Paris.", run.stdout)
        first = self.talk("What is the capital of France?").stdout
        fresh = self.talk("Hello").stdout
        self.assertTrue(run.stdout.startswith(first))
        self.assertNotEqual(run.stdout, first + fresh)  # the second answer saw the first question
        self.assertEqual(self.talk("What is the capital of France?", "/reset", "Hello").stdout, first + fresh)

    def test_a_terminal_s_colours_stay_off(self):
        self.assertNotIn("\x1b", self.talk("What is the capital of France?").stdout)

    def test_commands(self):
        run = self.talk("/nothing", "/help", "/quit", "What is the capital of France?")
        self.assertEqual((run.returncode, run.stdout), (0, ""))
        self.assertIn("there is no /nothing", run.stderr)
        self.assertIn("/reset", run.stderr)
        # A path is a question.
        self.assertNotEqual(self.talk("/usr/bin is what?", flags=["--max-tokens", "4"]).stdout, "")

    def test_system_starts_over(self):
        asked = "What is the capital of France?"
        given = briar(*CHAT, "--system", "Be brief.", stdin=asked + "\n").stdout
        typed = self.talk("What is 17 plus 25?", "/system Be brief.", asked).stdout
        self.assertTrue(typed.endswith(given), typed)
        none = self.talk("/system Be brief.", "/system", asked).stdout
        self.assertEqual(none, self.talk(asked).stdout)

    def test_lines_may_go_on_and_the_last_may_lack_its_end(self):
        whole = briar(*CHAT, stdin="What is the capital\\\nof France?", timeout=60)
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        self.assertNotEqual(whole.stdout, "")

    def test_echo_makes_a_transcript(self):
        run = self.talk("What is the capital of France?", flags=["--echo"])
        self.assertTrue(run.stdout.startswith("> What is the capital of France?\n\n"), run.stdout)

    def test_what_is_too_long_is_told_and_forgotten(self):
        run = self.talk("word " * 500, "What is the capital of France?", flags=["--max-model-len", "400", "--max-tokens", "200"])
        self.assertEqual(run.returncode, 0)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertIn("Paris", run.stdout)

    def test_length_is_told(self):
        run = self.talk("Tell me a story about a fox.", flags=["--max-tokens", "5"])
        self.assertIn("[cut off: length]", run.stderr)

    def test_the_users_fault_is_1(self):
        for flags in (["--format", "morse"], ["--format", "llama3"], ["--reasoning-effort", "maximal"]):
            run = self.talk("Hi", flags=flags)
            self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
            self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)


class Terminal(unittest.TestCase):
    def setUp(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(BRIAR, [BRIAR, *CHAT, "--max-tokens", "2000"])
        self.seen = ""

    def tearDown(self):
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def wait_for(self, text, timeout=60):
        """Reads until `text` appears, and forgets what came up to there."""
        end = time.monotonic() + timeout
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
            self.assertTrue(ready, f"no {text!r} in {self.seen!r}")
            self.seen += os.read(self.fd, 4096).decode("utf-8", "replace")
        before, self.seen = self.seen.split(text, 1)
        return before

    def send(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        self.wait_for("> ")
        for attempt in range(5):  # a short answer may end before the key arrives
            self.send("Tell me a story about a fox.\n")
            self.wait_for("fox.\r\n")
            self.wait_for("\x1b[2m")  # reasoning, dimmed: the answer has begun
            self.send("\x03")
            if "[stopped]" in self.wait_for("> "):
                break
        else:
            self.fail("no answer was stopped")
        self.send("/reset\n")
        self.wait_for("> ")
        self.send("What is the capital of France?\n")
        self.wait_for("Paris")
        self.wait_for("> ")
        self.send("/quit\n")
        self.assertEqual(self.end(), 0)

    def test_ctrl_c_at_the_prompt_and_ctrl_d(self):
        self.wait_for("> ")
        self.send("half a ques\x03")
        self.wait_for("leaves)")
        self.wait_for("> ")
        self.send("\x04")
        self.assertEqual(self.end(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
