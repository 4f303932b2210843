#!/usr/bin/env python3
"""Prints the figures that weight_loader_test.cc compares with, by struct and json alone.

usage: weight_sums.py MODEL_FOLDER...

A tensor's `sum` and `weighted` are over its elements v[i], or over their 16 bits for BF16:
sum(v[i]) and sum((i % 1021 + 1) * v[i]). All partial sums of the MXFP4 ones are exact in a double.
"""
import array
import glob
import json
import struct
import sys

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def read_tensors(folder):
    tensors = {}
    for path in sorted(glob.glob(folder + "/*.safetensors")):
        with open(path, "rb") as file:
            data = file.read()
        (size,) = struct.unpack("<Q", data[:8])
        for name, entry in json.loads(data[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                tensors[name] = data[8 + size + begin:8 + size + end]
    return tensors


def decode_mxfp4(blocks, scales):
    values = []
    for i, scale in enumerate(scales):
        factor = 2.0 ** (scale - 127)
        for byte in blocks[16 * i:16 * i + 16]:
            values.append(E2M1[byte % 16] * factor)
            values.append(E2M1[byte // 16] * factor)
    return values


def print_sums(name, values):
    weighted = sum((i % 1021 + 1) * v for i, v in enumerate(values))
    print(f"  {name}: {len(values)} elements, sum {sum(values)!r}, weighted {weighted!r}")


def main():
    for folder in sys.argv[1:]:
        tensors = read_tensors(folder)
        print(folder, len(tensors), "tensors,", sum(map(len, tensors.values())), "bytes")
        layer = "model.layers.1."
        for name in ["model.embed_tokens.weight", layer + "self_attn.q_proj.weight",
                     layer + "self_attn.k_proj.weight", layer + "self_attn.v_proj.weight",
                     "model.norm.weight"]:
            bits = array.array("H")
            bits.frombytes(tensors[name])
            print_sums(name, bits)
        for name in ["gate_up_proj", "down_proj"]:
            prefix = layer + "mlp.experts." + name
            print_sums(prefix, decode_mxfp4(tensors[prefix + "_blocks"], tensors[prefix + "_scales"]))


if __name__ == "__main__":
    main()
