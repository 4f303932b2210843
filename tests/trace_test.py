#!/usr/bin/env python3
"""`briar simulate` over real request traces, which lie beside the repository and are not part of it.

usage: trace_test.py FOLDER_OF_TRACES   (exit code 77: not there, and not in CI)
"""
import json
import os
import sys
import unittest

from briar_command import briar

TRACES = sys.argv[1]


def simulate(*flags):
    run = briar("simulate", "--json", *flags, timeout=1000)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)


class Traces(unittest.TestCase):
    def expect_sound(self, r):
        self.assertEqual(r["finished"], r["requests"])
        self.assertEqual(r["invariant_failures"], 0)

    def test_prefix_cache_one_after_another(self):
        # The traces' README: share of prompt tokens found by an ideal least-recently-used cache of 512-token blocks that
        # stores prompts alone. Ours stores answers too, which costs room where room is short.
        conversation = ["--trace", os.path.join(TRACES, "conversation-prefix.jsonl.xz"), "--serial", "--page-size", "512"]
        for pages, expected in ((0, 0.3734 - 5e-5), (10000, 0.2192 - 0.02)):
            r = simulate(*conversation, "--pages", pages)
            self.expect_sound(r)
            rate = r["prefix_hit_tokens"] / r["prompt_tokens"]
            print(f"{pages or 'all'} pages: {rate:.4f}")
            self.assertGreaterEqual(rate, expected)

    def test_loads(self):
        for load in (0.5, 0.9, 1.2):
            r = simulate("--trace", os.path.join(TRACES, "chat-2023.jsonl.xz"), "--limit", 5000, "--load", load)
            self.expect_sound(r)
            print(f"load {load}: {r}")
            self.assertLessEqual(r["max_wait_ratio"], 3)
            self.assertGreaterEqual(r["step_fill"], 0.97)


if __name__ == "__main__":
    if not os.path.isdir(TRACES):
        print(f"{TRACES} is not there" + (": an error in CI" if os.environ.get("CI") else ": skipped"))
        sys.exit(1 if os.environ.get("CI") else 77)
    sys.argv = sys.argv[:1]
    unittest.main(verbosity=2)
