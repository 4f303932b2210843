#!/usr/bin/env python3
"""Compares the encoding speed of `briar tokenize` with tiktoken's on one text, one thread each.

Usage: scripts/bench_tokenizer.py [--briar build/release/briar] [--text FILE]
           [--ranks build/assets/tokenizer/o200k_base.tiktoken] [--rounds 5]

Needs `pip install tiktoken`. Without --text it makes the text with make_mixed_text.py. First both
must give the same ids; then they take turns, and the medians of the rounds are printed with their
ratio.
"""

import argparse
import base64
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import tiktoken

UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join([
    rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]*[{LOWER}]+{CONTRACTION}",
    rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]+[{LOWER}]*{CONTRACTION}",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


def open_tiktoken(path):
    ranks = {}
    with open(path, "rb") as file:
        for line in file:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    return tiktoken.Encoding("o200k", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def briar_ids(briar, text):
    line = json.dumps({"text": text}) + "\n"
    done = subprocess.run([briar, "tokenize", "--jsonl", "-"], input=line.encode(), check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)["ids"]


def briar_speed(briar, path):
    done = subprocess.run([briar, "tokenize", "--bench", path], check=True, stdout=subprocess.PIPE)
    words = done.stdout.decode().splitlines()[-1].split()
    if words[0] != "encode" or words[2] != "MB/s":
        sys.exit(f"unexpected last line: {words}")
    return float(words[1])


def tiktoken_speed(encoding, text, num_bytes):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        encoding.encode_ordinary(text)
        seconds.append(time.perf_counter() - start)
    return num_bytes / 1e6 / statistics.median(seconds)


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--briar", default=str(root / "build/release/briar"))
    parser.add_argument("--text")
    parser.add_argument("--ranks", default=str(root / "build/assets/tokenizer/o200k_base.tiktoken"))
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as directory:
        path = args.text
        if path is None:
            path = directory + "/mixed.txt"
            script = root / "scripts/make_mixed_text.py"
            subprocess.run([sys.executable, script, "--out", path], check=True)
        data = pathlib.Path(path).read_bytes()
        text = data.decode()
        encoding = open_tiktoken(args.ranks)
        expected = encoding.encode_ordinary(text)
        if briar_ids(args.briar, text) != expected:
            sys.exit(f"{path}: the ids differ")
        print(f"{len(data)} bytes, {len(expected)} tokens, equal ids")
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(briar_speed(args.briar, path))
            theirs.append(tiktoken_speed(encoding, text, len(data)))
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    print(f"briar    {ours:7.2f} MB/s")
    print(f"tiktoken {theirs:7.2f} MB/s ({tiktoken.__version__})")
    print(f"ratio    {ours / theirs:7.2f}")


if __name__ == "__main__":
    main()
