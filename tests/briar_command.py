"""Runs the briar command for the tests in this folder."""
import json
import os
import subprocess

BRIAR = os.environ["BRIAR_COMMAND"]
ASSETS = os.environ["BRIAR_ASSETS"]
TINY = os.path.join(ASSETS, "models", "tiny-harmony")
RANDOM = os.path.join(ASSETS, "models", "gpt-oss-random")


def briar(*args, stdin=None, timeout=120, env=None):
    """The finished process, its output as text."""
    return subprocess.run([BRIAR, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})


def golden(name):
    with open(os.path.join(ASSETS, "golden", name + ".jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def score(model, cases, *flags, **kwargs):
    """The raw lines that `briar score` writes for these cases."""
    stdin = "".join(json.dumps({k: c[k] for k in ("name", "prompt", "generate") if k in c}) + "\n" for c in cases)
    run = briar("score", "--quiet", "--model", model, "--in", "-", "--out", "-", *flags, stdin=stdin, **kwargs)
    if run.returncode != 0:
        raise AssertionError(f"exit code {run.returncode}: {run.stderr}")
    return run.stdout.splitlines()
