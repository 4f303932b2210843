#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_tables.inc from unicode16_classes.json.

Usage: scripts/generate_unicode_tables.py build/assets/tokenizer/unicode16_classes.json \
           > src/tokenizer/unicode_tables.inc

The table has two stages: kClassBlockOf[code_point / 128] is the index of a block of 128 classes in
kClassBlocks. Equal blocks are stored once.
"""

import json
import sys

BLOCK = 128
NUM_CODE_POINTS = 0x110000

# The order of CharClass in unicode_classes.h.
OTHER, UPPER, LOWER, BOTH_CASES, MARK, NUMBER, SPACE, NEWLINE = range(8)


def read_classes(path):
    with open(path, encoding="utf-8") as file:
        ranges = json.load(file)["ranges_inclusive"]
    classes = bytearray(NUM_CODE_POINTS)
    for name, char_class in (("Lu", UPPER), ("Lt", UPPER), ("Ll", LOWER), ("Lm", BOTH_CASES),
                             ("Lo", BOTH_CASES), ("M", MARK), ("N", NUMBER),
                             ("White_Space", SPACE)):
        for first, last in ranges[name]:
            for code_point in range(first, last + 1):
                if classes[code_point] != OTHER:
                    sys.exit(f"U+{code_point:04X} is in two classes, the second is {name}")
                classes[code_point] = char_class
    letters = sum(last - first + 1 for first, last in ranges["L"])
    if letters != sum(c in (UPPER, LOWER, BOTH_CASES) for c in classes):
        sys.exit("L is not the union of Lu, Lt, Ll, Lm and Lo")
    for newline in b"\r\n":
        classes[newline] = NEWLINE
    return classes


def print_rows(values, width):
    for start in range(0, len(values), width):
        print(",".join(str(v) for v in values[start:start + width]) + ",")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    classes = read_classes(sys.argv[1])
    index_of = {}
    block_of = []
    for start in range(0, NUM_CODE_POINTS, BLOCK):
        block_of.append(index_of.setdefault(bytes(classes[start:start + BLOCK]), len(index_of)))
    if len(index_of) > 256:
        sys.exit(f"{len(index_of)} blocks do not fit the uint8_t of kClassBlockOf")
    print("// Unicode 16.0 character classes for the o200k split. Generated, do not edit:")
    print("// scripts/generate_unicode_tables.py build/assets/tokenizer/unicode16_classes.json")
    print("// clang-format off")
    print(f"constexpr uint8_t kClassBlockOf[{len(block_of)}] = {{")
    print_rows(block_of, 25)
    print("};")
    print(f"constexpr uint8_t kClassBlocks[{len(index_of)}][{BLOCK}] = {{")
    for block in index_of:
        print("{" + ",".join(str(c) for c in block) + "},")
    print("};")
    print("// clang-format on")


if __name__ == "__main__":
    main()
