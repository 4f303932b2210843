#!/usr/bin/env python3
"""Runs `briar simulate` over the real traces and over made requests at several loads, prints a table of times to
first token and between tokens, and draws them.

usage: simulation_loads.py BRIAR FOLDER_OF_TRACES [OUT.svg]     (OUT.svg needs matplotlib)
"""
import json
import os
import subprocess
import sys

LOADS = (0.5, 0.9, 1.2)


def sources(traces):
    return {
        "chat": ["--trace", os.path.join(traces, "chat-2023.jsonl.xz")],
        "long conversations": ["--trace", os.path.join(traces, "conversation-prefix.jsonl.xz"), "--page-size", "64"],
        "100,000 made requests": ["--requests", "100000", "--seed", "1"],
    }


def simulate(briar, flags):
    run = subprocess.run([briar, "simulate", "--json", *flags], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def draw(results, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, (key, title) in zip(axes, (("ttft_ms", "time to first token"), ("itl_ms", "time between tokens"))):
        for color, (name, by_load) in zip(("tab:blue", "tab:orange", "tab:green"), results.items()):
            for quantile, style in (("p50", "o-"), ("p99", "s--")):
                values = [by_load[load][key][quantile] for load in LOADS]
                axis.plot(LOADS, values, style, color=color, label=f"{name}, {quantile}")
        axis.set(title=title, xlabel="load (1 = all the engine can do)", ylabel="ms, simulated", yscale="log", xticks=LOADS)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.savefig(path)


def main():
    briar, traces = sys.argv[1:3]
    results = {}
    print("| requests | load | first token p50, p99 (ms) | between tokens p50, p99 (ms) | longest wait / median | step fill | steps |")
    print("|---|---|---|---|---|---|---|")
    for name, flags in sources(traces).items():
        for load in LOADS:
            r = simulate(briar, [*flags, "--load", str(load)])
            assert r["finished"] == r["requests"] and r["invariant_failures"] == 0, r
            results.setdefault(name, {})[load] = r
            print(f"| {name} | {load} | {r['ttft_ms']['p50']:.0f}, {r['ttft_ms']['p99']:.0f} | {r['itl_ms']['p50']:.1f}, "
                  f"{r['itl_ms']['p99']:.1f} | {r['max_wait_ratio']:.2f} | {r['step_fill']:.3f} | {r['steps']:,} |", flush=True)
    if len(sys.argv) > 3:
        draw(results, sys.argv[3])


if __name__ == "__main__":
    main()
