#!/usr/bin/env python3
"""One model in every published spelling gives the same bytes: Hugging Face shards, transformers v5's
rope_parameters, OpenAI's original/ names, experts saved in bf16."""
import json
import os
import shutil
import struct
import tempfile
import unittest

from briar_command import RANDOM, TINY, briar, golden, score
from make_malformed_models import Source, safetensors

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def bf16(value):
    """Bytes of a value that bf16 holds exactly."""
    bits = struct.pack("<f", value)
    assert bits[:2] == b"\0\0", value
    return bits[2:]


def original_tensors(source):
    """Hugging Face's names and separate q, k, v to OpenAI's names and one qkv."""
    plain = {"input_layernorm.weight": "attn.norm.scale", "self_attn.sinks": "attn.sinks",
             "self_attn.o_proj.weight": "attn.out.weight", "self_attn.o_proj.bias": "attn.out.bias",
             "post_attention_layernorm.weight": "mlp.norm.scale", "mlp.router.weight": "mlp.gate.weight",
             "mlp.router.bias": "mlp.gate.bias",
             "mlp.experts.gate_up_proj_blocks": "mlp.mlp1_weight.blocks",
             "mlp.experts.gate_up_proj_scales": "mlp.mlp1_weight.scales",
             "mlp.experts.gate_up_proj_bias": "mlp.mlp1_bias",
             "mlp.experts.down_proj_blocks": "mlp.mlp2_weight.blocks",
             "mlp.experts.down_proj_scales": "mlp.mlp2_weight.scales",
             "mlp.experts.down_proj_bias": "mlp.mlp2_bias"}
    out = {"embedding.weight": source.tensors["model.embed_tokens.weight"],
           "unembedding.weight": source.tensors["lm_head.weight"],
           "norm.scale": source.tensors["model.norm.weight"]}
    for layer in range(source.config["num_hidden_layers"]):
        old, new = f"model.layers.{layer}.", f"block.{layer}."
        for name, original in plain.items():
            out[new + original] = source.tensors[old + name]
        for part in ("weight", "bias"):
            parts = [source.tensors[f"{old}self_attn.{p}_proj.{part}"] for p in "qkv"]
            rows = sum(shape[0] for _, shape, _ in parts)
            out[f"{new}attn.qkv.{part}"] = (parts[0][0], [rows, *parts[0][1][1:]], b"".join(p[2] for p in parts))
    return out


def original_config(config):
    scaling = config["rope_scaling"]
    keys = ["num_hidden_layers", "vocab_size", "hidden_size", "intermediate_size", "swiglu_limit", "head_dim",
            "num_attention_heads", "num_key_value_heads", "sliding_window", "initial_context_length", "rope_theta"]
    return {**{k: config[k] for k in keys}, "num_experts": config["num_local_experts"],
            "experts_per_token": config["num_experts_per_tok"], "rope_scaling_factor": scaling["factor"],
            "rope_ntk_alpha": scaling["beta_slow"], "rope_ntk_beta": scaling["beta_fast"]}


def expanded_experts(tensors, name):
    """MXFP4 blocks and scales to Hugging Face's dense layout [experts, columns, rows] in bf16."""
    _, (experts, rows, groups, _), blocks = tensors.pop(name + "_blocks")
    _, _, scales = tensors.pop(name + "_scales")
    columns = groups * 32
    # All products of a 4-bit value and a scale are exact in bf16; there are few different ones.
    table = {s: [bf16(v * 2.0 ** (s - 127)) for v in E2M1] for s in set(scales)}
    out = bytearray(experts * rows * columns * 2)
    for e in range(experts):
        for r in range(rows):
            for g in range(groups):
                block = (e * rows + r) * groups + g
                values = table[scales[block]]
                for i in range(16):
                    byte = blocks[block * 16 + i]
                    for nibble, k in ((byte & 15, g * 32 + 2 * i), (byte >> 4, g * 32 + 2 * i + 1)):
                        at = ((e * columns + k) * rows + r) * 2
                        out[at:at + 2] = values[nibble]
    tensors[name] = ("BF16", [experts, columns, rows], bytes(out))


class Spellings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.source = Source(RANDOM)
        cls.cases = [c for c in golden("gpt-oss-random") if len(c["prompt"]) < 400]
        cls.reference = score(RANDOM, cls.cases)

    def folder(self, config, files):
        path = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, path)
        shutil.copy(os.path.join(RANDOM, "generation_config.json"), path)
        with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        for name, data in files.items():
            with open(os.path.join(path, name), "wb") as file:
                file.write(data)
        return path

    def expect_same(self, config, files):
        self.assertEqual(score(self.folder(config, files), self.cases), self.reference)

    def weights(self):
        return {"model.safetensors": safetensors(self.source.tensors)}

    def test_openai_original(self):
        self.expect_same(original_config(self.source.config), {"model.safetensors": safetensors(original_tensors(self.source))})

    def test_shards_with_and_without_an_index(self):
        names = list(self.source.tensors)
        parts = {f"model-{i}.safetensors": names[i::3] for i in range(3)}
        files = {f: safetensors({n: self.source.tensors[n] for n in part}) for f, part in parts.items()}
        self.expect_same(self.source.config, files)
        index = {"weight_map": {n: f for f, part in parts.items() for n in part}}
        self.expect_same(self.source.config, {**files, "model.safetensors.index.json": json.dumps(index).encode()})

    def test_experts_saved_in_bf16(self):
        tensors = dict(self.source.tensors)
        for layer in range(self.source.config["num_hidden_layers"]):
            for name in ("gate_up_proj", "down_proj"):
                expanded_experts(tensors, f"model.layers.{layer}.mlp.experts.{name}")
        self.expect_same(self.source.config, {"model.safetensors": safetensors(tensors)})

    def test_A04_rope_under_either_key(self):
        config = dict(self.source.config)
        scaling = config.pop("rope_scaling")
        theta = config.pop("rope_theta")
        self.expect_same({**config, "rope_parameters": {**scaling, "rope_theta": theta}}, self.weights())
        run = briar("score", "--quiet", "--model", self.folder({**config, "rope_theta": theta}, self.weights()),
                    "--in", "-", "--out", "-", stdin="")
        self.assertEqual(run.returncode, 1, "a gpt-oss folder that lost its scaling")
        self.assertIn("rope", run.stderr)

    def test_A04_first_token_of_a_400_token_prompt(self):
        cases = [c for c in golden("tiny-harmony") if 380 <= len(c["prompt"]) <= 450 and c["greedy"]]
        self.assertGreaterEqual(len(cases), 3)
        for case, line in zip(cases, map(json.loads, score(TINY, cases))):
            self.assertEqual(line["greedy"][0], case["greedy"][0], case["name"])

    def test_W02_one_tensor_or_one_scale_tensor_missing(self):
        for name in ("model.layers.2.mlp.experts.down_proj_scales", "model.layers.3.self_attn.sinks"):
            tensors = {n: t for n, t in self.source.tensors.items() if n != name}
            run = briar("score", "--quiet", "--model", self.folder(self.source.config, {"model.safetensors": safetensors(tensors)}),
                        "--in", "-", "--out", "-", stdin="")
            self.assertEqual(run.returncode, 1)
            self.assertIn(name, run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
