#!/usr/bin/env python3
"""Fails if an object file of the CPU kernels shares a function with the rest of the program.

    check_isa_symbols.py NM OBJECT...

An inline function that a kernel file uses but that the compiler does not inline becomes a weak
symbol. The linker keeps one of all weak symbols of a name: if that is the one compiled with AVX-512
flags, the AVX2 path, and every other caller, runs AVX-512 code. So a kernel object may define weak
functions only under names of its own: inside briar::avx2, briar::avx512 or briar::avx512bf16, or templates over
something that is. Weak data (DW.ref.*, type information) holds no instructions."""
import re
import subprocess
import sys

OWN = re.compile(r"\bbriar::(avx2|avx512|avx512bf16)::")
DATA = re.compile(r"^(DW\.ref\.|typeinfo |vtable |guard variable )")


def defined_symbols(nm, path):
    """Pairs of (type letter, demangled name)."""
    run = subprocess.run([nm, "-C", "--defined-only", path], check=True, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        match = re.match(r"[0-9a-f]+ (\S) (.*)", line)
        if match:
            yield match[1], match[2]


def main():
    nm, objects = sys.argv[1], sys.argv[2:]
    faults, num_own = [], 0
    for path in objects:
        for kind, name in defined_symbols(nm, path):
            own = OWN.search(name) is not None
            num_own += own and kind == "T"
            if kind in "WVu" and not own and not DATA.match(name):
                faults.append(f"{path}: weak symbol {name}")
    if num_own == 0:
        faults.append(f"no kernels found in {len(objects)} objects")
    print("\n".join(faults) if faults else f"{len(objects)} objects define {num_own} kernels and share none")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
