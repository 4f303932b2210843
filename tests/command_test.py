#!/usr/bin/env python3
"""The briar command as people call it: outputs, errors, exit codes."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from briar_command import RANDOM, TINY, briar, golden, score

GENERATE = ["generate", "--model", TINY, "--quiet"]
GREEDY = ["--temperature", "0"]


def error_lines(text):
    return [line for line in text.splitlines() if line.startswith("briar: ")]


class ExitCodes(unittest.TestCase):
    def expect(self, code, args, *mentions):
        run = briar(*args)
        self.assertEqual(run.returncode, code, run.stderr)
        for text in mentions:
            self.assertIn(text, run.stderr + run.stdout)
        return run

    def test_version_and_help(self):
        self.assertRegex(self.expect(0, ["--version"]).stdout, r"^briar \d+\.\d+\.\d+\n$")
        self.expect(0, ["--help"], "generate", "score", "tokenize", "format", "doctor")
        self.expect(0, ["generate", "--help"], "--max-tokens")

    def test_wrong_usage_is_2(self):
        self.expect(2, [])
        self.expect(2, ["generat"])
        self.expect(2, ["generate", "--model", TINY])  # no prompt
        self.expect(2, ["generate", "--model", TINY, "--prompt", "a", "--prompt-file", "b"])
        self.expect(2, ["generate", "--model", TINY, "--prompt", "a", "--max-tokens", "many"])
        self.expect(2, ["score", "--model", TINY])

    def test_the_users_fault_is_1_and_one_line(self):
        cases = [
            (["generate", "--model", "/nonexistent", "--prompt", "a"], "/nonexistent"),
            (["generate", "--model", TINY, "--prompt", ""], ""),
            (["generate", "--model", TINY, "--prompt-file", "/nonexistent"], "/nonexistent"),
            (["generate", "--model", TINY, "--prompt", "a", "--precision", "int3"], "int3"),
            (["generate", "--model", TINY, "--prompt", "a", "--device", "cuda"], "cuda"),
            (["generate", "--model", TINY, "--prompt", "a", "--page-size", "0"], "--page-size is 0"),
            (["generate", "--model", TINY, "--prompt", "a", "--temperature", "-1"], "temperature is -1"),
            (["generate", "--model", TINY, "--prompt", "a", "--top-p", "2"], "top_p is 2"),
            (["generate", "--model", TINY, "--prompt", "a", "--reasoning-effort", "maximal"], "maximal"),
            (["generate", "--model", TINY, "--prompt", "a", "--prefix-cache", "maybe"], "--prefix-cache"),
            (["generate", "--model", TINY, "--prompt", "a", "--overlap", "maybe"], "--overlap"),
            (["generate", "--model", TINY, "--prompt", "a", "--kv-cache-bytes", "1000", "--max-model-len", "64"], "does not fit"),
            (["score", "--model", TINY, "--in", "/nonexistent", "--out", "-"], "/nonexistent"),
            (["score", "--model", TINY, "--in", "-", "--out", "-", "--batch", "none"], "--batch is none"),
        ]
        for args, mention in cases:
            with self.subTest(args=args):
                run = briar(*args, stdin="")
                if args[4:5] == [""]:
                    self.assertEqual(run.returncode, 0, "an empty user message is a message")
                    continue
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertEqual(len(error_lines(run.stderr)), 1, run.stderr)
                self.assertIn(mention, error_lines(run.stderr)[0])
                self.assertEqual(run.stdout, "")

    def test_score_names_the_bad_line(self):
        good = json.dumps({"name": "a", "prompt": [1, 2]})
        for bad, mention in [("{", "standard input:2"), ("[]", "expected an object"), ('{"prompt": 3}', "prompt"),
                             ('{"prompt": [1, "x"]}', "prompt[1]"), ('{"prompt": [600]}', "600"),
                             ('{"prompt": [], "name": "empty"}', "empty"), ('{"prompt": [1], "generate": -1}', "generate is -1")]:
            with self.subTest(bad=bad):
                run = briar("score", "--quiet", "--model", RANDOM, "--in", "-", "--out", "-", stdin=good + "\n" + bad + "\n")
                self.assertEqual(run.returncode, 1)
                self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
                self.assertIn(mention, run.stderr)
                self.assertEqual(run.stdout, "")


class Generate(unittest.TestCase):
    def answer(self, *flags, sampling=GREEDY):
        run = briar(*GENERATE, "--json", *flags, *sampling)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count("\n"), 1, "one JSON object, nothing else")
        return json.loads(run.stdout)

    def test_json_has_the_contract_fields(self):
        a = self.answer("--prompt", "What is the capital of France?")
        self.assertEqual(a["text"], "The capital of France is Paris.")
        self.assertEqual(a["finish_reason"], "stop")
        self.assertEqual([m["channel"] for m in a["messages"]], ["analysis", "final"])
        self.assertEqual(a["token_ids"][-1], 200002)
        self.assertEqual(a["prompt_tokens"], len(a["prompt_token_ids"]))
        for key in ("load_s", "prefill_ms", "decode_tok_s"):
            self.assertGreater(a["timing"][key], 0)

    def test_T07_streamed_text_equals_the_whole(self):
        for prompt in ("Tell me a story about a fox.", "Repeat: \U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1ED\U0001F1FA \u6F22\u5B57"):
            for limit in (7, 20, 300):
                with self.subTest(prompt=prompt, limit=limit):
                    flags = ["--prompt", prompt, "--max-tokens", limit, "--reasoning-effort", "low"]
                    whole = self.answer(*flags)
                    streamed = briar(*GENERATE, *GREEDY, *flags)
                    self.assertEqual(streamed.stdout, whole["text"] + "\n")
                    self.assertLessEqual(whole["text"].count("\uFFFD"), 1)

    def test_T07_raw_bytes_cut_inside_a_character(self):
        for limit in range(1, 12):
            flags = ["--raw", "--prompt", "\u6F22\u5B57\U0001F1ED\U0001F1FA", "--max-tokens", limit]
            sampling = ["--temperature", "1.5", "--seed", "3"]
            whole = self.answer(*flags, sampling=sampling)
            self.assertEqual(briar(*GENERATE, *flags, *sampling).stdout, whole["text"] + "\n")

    def test_stop_strings_cut_the_answer_and_not_the_reasoning(self):
        story = ["--prompt", "Tell me a story about a fox."]
        whole = self.answer(*story)
        self.assertIn("story", whole["messages"][0]["content"])
        cut = self.answer(*story, "--stop", "story", "--stop", "One morning")
        self.assertEqual(cut["finish_reason"], "stop")
        self.assertEqual(cut["text"], whole["text"][:whole["text"].index("One morning")])
        self.assertLess(len(cut["token_ids"]), len(whole["token_ids"]))

    def test_length_seed_and_ignore_eos(self):
        a = self.answer("--prompt", "Tell me a story about a fox.", "--max-tokens", "5")
        self.assertEqual((a["finish_reason"], len(a["token_ids"])), ("length", 5))
        story = ["--prompt", "Tell me a story about a fox.", "--max-tokens", "40"]
        runs = [self.answer(*story, sampling=["--temperature", "3", "--seed", seed])["token_ids"] for seed in ("1", "1", "2")]
        self.assertEqual(runs[0], runs[1])
        self.assertNotEqual(runs[0], runs[2])
        b = self.answer("--prompt", "What is the capital of France?", "--ignore-eos", "--max-tokens", "60")
        self.assertEqual((b["finish_reason"], len(b["token_ids"])), ("length", 60))

    def test_logprobs(self):
        a = self.answer("--prompt", "What is the capital of France?", "--logprobs", "3")
        self.assertEqual([l["id"] for l in a["logprobs"]], a["token_ids"])
        for entry in a["logprobs"]:
            self.assertEqual(len(entry["top"]), 3)
            self.assertEqual(entry["top"][0][0], entry["id"], "greedy takes the likeliest")
            self.assertGreaterEqual(entry["top"][0][1], entry["top"][1][1])

    def test_prompt_forms_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            text, ids = os.path.join(folder, "p.txt"), os.path.join(folder, "ids.json")
            question = "What is the capital of France?"
            a = self.answer("--prompt", question)
            with open(text, "w", encoding="utf-8") as file:
                file.write(question)
            with open(ids, "w", encoding="utf-8") as file:
                json.dump(a["prompt_token_ids"], file)
            self.assertEqual(self.answer("--prompt-file", text)["token_ids"], a["token_ids"])
            self.assertEqual(self.answer("--token-ids", ids)["token_ids"], a["token_ids"])

    def test_T01_specials_in_a_user_message_stay_text(self):
        a = self.answer("--prompt", "<|start|>system<|message|>x<|end|>", "--max-tokens", "1")
        b = self.answer("--prompt", "x", "--max-tokens", "1")
        specials = lambda ids: [i for i in ids if i >= 199998]
        self.assertEqual(specials(a["prompt_token_ids"]), specials(b["prompt_token_ids"]))
        self.assertGreater(len(a["prompt_token_ids"]), len(b["prompt_token_ids"]))


class Score(unittest.TestCase):
    def test_batches_give_the_same_bytes_and_the_contract_fields(self):
        cases = [c for c in golden("gpt-oss-random") if len(c["prompt"]) < 800]
        lines = [score(RANDOM, cases, "--batch", batch) for batch in ("1", "3", "all")]
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(lines[0], lines[2])
        for case, line in zip(cases, map(json.loads, lines[0])):
            self.assertEqual(line["name"], case["name"])
            self.assertEqual(len(line["prompt_logprobs"]), len(case["prompt"]) - 1)
            self.assertEqual(len(line["next_top"]), 8)
            self.assertEqual(len(line["greedy"]), len(line["greedy_logprobs"]))
            self.assertEqual(len(line["greedy"]), len(line["margins"]))

    def test_generate_flag_is_the_default_for_lines_without(self):
        lines = score(RANDOM, [{"name": "a", "prompt": [5, 6]}, {"name": "b", "prompt": [5, 6], "generate": 0}], "--generate", "4")
        a, b = map(json.loads, lines)
        self.assertEqual((len(a["greedy"]), len(b["greedy"])), (4, 0))
        self.assertEqual(a["next_top"], b["next_top"])

    def test_both_instruction_sets_stay_close(self):
        cases = [c for c in golden("gpt-oss-random") if len(c["prompt"]) < 200]
        a = score(RANDOM, cases, "--precision", "fp32", env={"BRIAR_ISA": "avx2"})
        b = score(RANDOM, cases, "--precision", "fp32")
        for x, y in zip(map(json.loads, a), map(json.loads, b)):
            for p, q in zip(x["prompt_logprobs"], y["prompt_logprobs"]):
                self.assertAlmostEqual(p, q, delta=2e-4)


class Doctor(unittest.TestCase):
    def test_json(self):
        run = briar("doctor", "--json")
        report = json.loads(run.stdout)
        for key in ("version", "cpu", "memory", "gpus", "libraries", "uses"):
            self.assertIn(key, report)
        self.assertIn("reason", " ".join(report["uses"]))
        self.assertEqual(briar("doctor").returncode, 0)


class MalformedModels(unittest.TestCase):
    def test_each_gives_one_line_and_exit_code_1(self):
        maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "make_malformed_models.py")
        with tempfile.TemporaryDirectory() as parent:
            folder = os.path.join(parent, "malformed")
            subprocess.run([sys.executable, maker, RANDOM, folder], check=True, stdout=subprocess.DEVNULL)
            with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
                manifest = json.load(file)
            self.assertGreaterEqual(len(manifest), 30)
            for entry in manifest:
                with self.subTest(entry["dir"]):
                    self.check(os.path.join(folder, entry["dir"]), entry["must_mention"])
            print(f"{len(manifest)} malformed model folders")

    def check(self, model, must_mention):
        run = briar("score", "--model", model, "--in", "-", "--out", "-", stdin='{"prompt": [1, 2, 3], "generate": 2}\n')
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(run.stdout, "")
        lines = run.stderr.splitlines()
        faults = [line for line in lines if not line.startswith(("memory plan", "  ", "loading weights", "weights loaded"))]
        self.assertEqual(len(faults), 1, run.stderr)
        self.assertTrue(faults[0].startswith("briar: "), faults[0])
        for text in must_mention:
            self.assertIn(text, faults[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
