#!/usr/bin/env python3
"""Fails on a forbidden #include: folders under src/ depend one way only, and product code includes no
test code. The table is docs/architecture.md's."""
import pathlib
import re
import sys

BELOW_LAYERS = {"base", "device", "kernels", "weights", "batch"}
# layout.h of a kernel folder (how an op wants its weights packed) is open to weights/ as well.
ALLOWED = {
    "base": set(),
    "device": {"base"},
    "kernels": {"base", "device"},
    "weights": {"base", "device"},
    "batch": {"base", "device"},
    "layers": BELOW_LAYERS,
    "models": (BELOW_LAYERS - {"kernels"}) | {"layers"},
    "kvcache": {"base"},
    "engine": BELOW_LAYERS | {"layers", "models", "kvcache", "briar"},
    "tokenizer": {"base"},
    "formats": {"base", "tokenizer"},
    "grammar": {"base", "tokenizer", "formats", "briar"},
    "server": {"base", "tokenizer", "formats", "grammar", "briar"},
    "cli": BELOW_LAYERS | {"layers", "models", "kvcache", "engine", "tokenizer", "formats", "server", "briar"},
}
TEST_STEM = re.compile(r"(_test|_bench|_ref)$")


def is_test(path):
    return bool(TEST_STEM.search(path.stem)) or path.parts[-2] == "test" or path.stem.startswith("test_")


def check(root):
    faults = []
    for path in sorted(root.rglob("*")):
        if path.suffix not in {".h", ".cc", ".cu", ".cuh"}:
            continue
        folder = path.relative_to(root).parts[0]
        if folder not in ALLOWED:
            faults.append(f"{path}: folder {folder} is not in the table of {sys.argv[0]}")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#include "([a-z_]+)/([^"]+)"', line)
            if not match or is_test(path):
                continue
            target, rest = match[1], match[2]
            allowed = target == folder or target in ALLOWED[folder]
            if folder == "weights" and re.fullmatch(r"[a-z_]+/layout\.h", rest):
                allowed = True
            if not allowed:
                faults.append(f"{path}:{number}: {folder} may not include {target}")
            if TEST_STEM.search(pathlib.PurePath(rest).stem):
                faults.append(f"{path}:{number}: product code includes test code {target}/{rest}")
    return faults


def main():
    faults = check(pathlib.Path(sys.argv[1]))
    print("\n".join(faults) if faults else "includes: all point downwards")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
