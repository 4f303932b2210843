#!/usr/bin/env python3
"""A06: a fact far above is found, whatever the chunk; and no answer is a run of one token.

usage: needle_test.py [LENGTH ...]   (prompt lengths in tokens, about; default 2000 4000)

The bundled model was trained on prompts of up to 1,800 tokens. Beyond 5,000 it is only asked to answer the same way
with every chunk, and not with a run of one token.
"""
import json
import random
import sys
import unittest

from briar_command import TINY, briar

NAMES = ["Iris", "Emma", "Karen", "Alice", "Bob"]
ANIMALS, PLACES = ["badger", "fox", "raven", "owl", "wolf", "hare"], ["castle", "village", "market", "river", "meadow"]
ADJECTIVES, CITIES = ["proud", "hungry", "clever", "quiet", "sleepy"], ["Budapest", "Sofia", "Helsinki", "Madrid", "Paris"]
LENGTHS = [int(a) for a in sys.argv[1:]] or [2000, 4000]
LONGEST_RELIABLE = 5000
TOKENS_A_SENTENCE = 9


def filler(rng):
    if rng.random() < 0.5:
        return f"The {rng.choice(ADJECTIVES)} {rng.choice(ANIMALS)} went to the {rng.choice(PLACES)}."
    return f"It is {rng.randint(1, 12)} o'clock in {rng.choice(CITIES)}."


def haystack(length, name, word, seed):
    rng = random.Random(seed)
    sentences = [filler(rng) for _ in range(length // TOKENS_A_SENTENCE)]
    sentences.insert(len(sentences) // 2, f"The secret word of {name} is {word}.")
    return " ".join(sentences) + f" What is the secret word of {name}?"


def answer(text, chunk):
    run = briar("generate", "--model", TINY, "--quiet", "--json", "--temperature", "0", "--reasoning-effort", "low",
                "--max-tokens", "40", "--prompt-file", "-", "--chunk", chunk, "--max-batch-tokens", "8192",
                stdin=text, timeout=3000)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)


class A06(unittest.TestCase):
    def test_needle(self):
        for length in LENGTHS:
            for name, word in (("Iris", "oyster"), ("Emma", "hollow")):
                text = haystack(length, name, word, length)
                answers = [answer(text, chunk) for chunk in ("512", "4096", "8192")]
                first = answers[0]
                print(f"{first['prompt_tokens']} prompt tokens: {first['text']!r}, {first['timing']['prefill_ms']:.0f} ms")
                for other in answers[1:]:
                    self.assertEqual(other["token_ids"], first["token_ids"], "the chunk changed the answer")
                if length <= LONGEST_RELIABLE:
                    self.assertIn(word, first["text"])
                ids = first["token_ids"]
                self.assertGreater(len(set(ids)), len(ids) // 2, "a run of one token")


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main(verbosity=2)
