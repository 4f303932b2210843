#!/usr/bin/env python3
"""Dense models whose options no golden file has (norms of q and k, windows, biases everywhere, RoPE scalings, head sizes):
small random checkpoints through `briar score` against a forward pass written here in plain Python floats."""
import json
import math
import os
import random
import struct
import tempfile
import unittest

from briar_command import score

HIDDEN, INNER, VOCAB, LAYERS, TOKENS = 32, 48, 40, 2, 24


def bf16(x):
    """Rounded to bfloat16, so that the file and this program have the same weights."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


class Model:
    def __init__(self, seed, **config):
        self.c = {"hidden_size": HIDDEN, "intermediate_size": INNER, "vocab_size": VOCAB, "num_hidden_layers": LAYERS,
                  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512,
                  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "eos_token_id": 0, **config}
        rng = random.Random(seed)
        matrix = lambda rows, columns: [[bf16(rng.gauss(0, 0.25)) for _ in range(columns)] for _ in range(rows)]
        vector = lambda n, mean=0.0: [bf16(mean + rng.gauss(0, 0.3)) for _ in range(n)]
        c, w = self.c, {}
        q, kv = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
        w["model.embed_tokens.weight"] = matrix(VOCAB, HIDDEN)
        w["model.norm.weight"] = vector(HIDDEN, 1)
        if not c["tie_word_embeddings"]:
            w["lm_head.weight"] = matrix(VOCAB, HIDDEN)
        for i in range(LAYERS):
            p = f"model.layers.{i}."
            for name in ("input_layernorm", "post_attention_layernorm"):
                w[p + name + ".weight"] = vector(HIDDEN, 1)
            for name, rows, columns in (("q", q, HIDDEN), ("k", kv, HIDDEN), ("v", kv, HIDDEN), ("o", HIDDEN, q)):
                w[f"{p}self_attn.{name}_proj.weight"] = matrix(rows, columns)
                if c.get("attention_bias") or (name != "o" and c["model_type"] == "qwen2"):
                    w[f"{p}self_attn.{name}_proj.bias"] = vector(rows)
            if c["model_type"] == "qwen3":
                for name in ("q_norm", "k_norm"):
                    w[f"{p}self_attn.{name}.weight"] = vector(c["head_dim"], 1)
            for name, rows, columns in (("gate", INNER, HIDDEN), ("up", INNER, HIDDEN), ("down", HIDDEN, INNER)):
                w[f"{p}mlp.{name}_proj.weight"] = matrix(rows, columns)
                if c.get("mlp_bias"):
                    w[f"{p}mlp.{name}_proj.bias"] = vector(rows)
        self.w = w

    def save(self, folder):
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(self.c, f)
        header, data = {}, b""
        for name, value in self.w.items():
            shape = [len(value), len(value[0])] if isinstance(value[0], list) else [len(value)]
            flat = [x for row in value for x in row] if len(shape) == 2 else value
            blob = b"".join(struct.pack("<f", x)[2:] for x in flat)
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + len(blob)]}
            data += blob
        text = json.dumps(header).encode()
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + data)

    def linear(self, x, name):
        bias = self.w.get(name + ".bias")
        out = [sum(a * b for a, b in zip(row, x)) for row in self.w[name + ".weight"]]
        return [a + b for a, b in zip(out, bias)] if bias else out

    def norm(self, x, name):
        factor = 1 / math.sqrt(sum(v * v for v in x) / len(x) + self.c["rms_norm_eps"])
        return [v * factor * g for v, g in zip(x, self.w[name + ".weight"])]

    def frequencies(self):
        """By wavelength and by dimension, as the papers and transformers have them."""
        dim, theta, s = self.c["head_dim"], self.c["rope_theta"], self.c.get("rope_scaling") or {}
        plain = [theta ** (-2 * i / dim) for i in range(dim // 2)]
        kind = s.get("rope_type", "default")
        if kind == "linear":
            return [f / s["factor"] for f in plain], 1.0
        if kind == "llama3":
            out = []
            for f in plain:
                wavelength, original = 2 * math.pi / f, s["original_max_position_embeddings"]
                low, high = s["low_freq_factor"], s["high_freq_factor"]
                smooth = min(1, max(0, (original / wavelength - low) / (high - low)))
                out.append((1 - smooth) * f / s["factor"] + smooth * f)
            return out, 1.0
        if kind == "yarn":
            original, factor = s["original_max_position_embeddings"], s["factor"]
            at = lambda turns: dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))
            low, high = max(math.floor(at(32)), 0), min(math.ceil(at(1)), dim - 1)
            ramp = [min(1, max(0, (i - low) / (high - low))) for i in range(dim // 2)]
            return [f / factor * r + f * (1 - r) for f, r in zip(plain, ramp)], 0.1 * math.log(factor) + 1
        return plain, 1.0

    def rotate(self, head, position):
        frequencies, factor = self.frequencies()
        half, out = len(head) // 2, list(head)
        for i, f in enumerate(frequencies):
            cos, sin = math.cos(position * f) * factor, math.sin(position * f) * factor
            out[i] = head[i] * cos - head[i + half] * sin
            out[i + half] = head[i + half] * cos + head[i] * sin
        return out

    def window(self, layer):
        c = self.c
        if not c.get("sliding_window") or not c.get("use_sliding_window", c["model_type"] == "mistral"):
            return 10 ** 9
        if "layer_types" in c:
            return c["sliding_window"] if c["layer_types"][layer] == "sliding_attention" else 10 ** 9
        return c["sliding_window"] if layer >= c.get("max_window_layers", 0) else 10 ** 9

    def attention(self, rows, layer):
        c, p = self.c, f"model.layers.{layer}.self_attn."
        dim, group = c["head_dim"], c["num_attention_heads"] // c["num_key_value_heads"]
        heads = lambda x: [x[i:i + dim] for i in range(0, len(x), dim)]
        normed = lambda head, name: self.norm(head, p + name) if c["model_type"] == "qwen3" else head
        keys, values, out = [], [], []
        for position, x in enumerate(rows):
            q = [self.rotate(normed(h, "q_norm"), position) for h in heads(self.linear(x, p + "q_proj"))]
            keys.append([self.rotate(normed(h, "k_norm"), position) for h in heads(self.linear(x, p + "k_proj"))])
            values.append(heads(self.linear(x, p + "v_proj")))
            first, result = max(0, position - self.window(layer) + 1), []
            for i, head in enumerate(q):
                scores = [sum(a * b for a, b in zip(head, keys[j][i // group])) / math.sqrt(dim)
                          for j in range(first, position + 1)]
                top = max(scores)
                weights = [math.exp(s - top) for s in scores]
                total = sum(weights)
                result += [sum(w * values[first + j][i // group][k] for j, w in enumerate(weights)) / total
                           for k in range(dim)]
            out.append(self.linear(result, p + "o_proj"))
        return out

    def mlp(self, x, layer):
        p = f"model.layers.{layer}.mlp."
        gate, up = self.linear(x, p + "gate_proj"), self.linear(x, p + "up_proj")
        return self.linear([g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)], p + "down_proj")

    def logprobs(self, ids):
        """Of ids[1:], given what stands before."""
        add = lambda a, b: [x + y for x, y in zip(a, b)]
        rows = [self.w["model.embed_tokens.weight"][i] for i in ids]
        for layer in range(LAYERS):
            p = f"model.layers.{layer}."
            out = self.attention([self.norm(x, p + "input_layernorm") for x in rows], layer)
            rows = [add(x, o) for x, o in zip(rows, out)]
            rows = [add(x, self.mlp(self.norm(x, p + "post_attention_layernorm"), layer)) for x in rows]
        head = "model.embed_tokens" if self.c["tie_word_embeddings"] else "lm_head"
        out = []
        for x, target in zip(rows, ids[1:]):
            logits = self.linear(self.norm(x, "model.norm"), head)
            top = max(logits)
            out.append(logits[target] - top - math.log(sum(math.exp(v - top) for v in logits)))
        return out


class DenseOptions(unittest.TestCase):
    def check(self, **config):
        model = Model(seed=5, **config)
        rng = random.Random(9)
        ids = [rng.randrange(VOCAB) for _ in range(TOKENS)]
        with tempfile.TemporaryDirectory() as folder:
            model.save(folder)
            for chunk in (512, 5):
                lines = score(folder, [{"name": "a", "prompt": ids}], "--precision", "fp32", "--chunk", chunk,
                              "--page-size", 4, "--kv-cache-bytes", 4000000)
                got = json.loads(lines[0])["prompt_logprobs"]
                worst = max(abs(a - b) for a, b in zip(got, model.logprobs(ids), strict=True))
                self.assertLess(worst, 2e-4)

    def test_qwen3_norms(self):
        self.check(model_type="qwen3", tie_word_embeddings=True)

    def test_qwen3_with_biases(self):
        self.check(model_type="qwen3", attention_bias=True)

    def test_llama_with_all_biases(self):
        self.check(model_type="llama", attention_bias=True, mlp_bias=True)

    def test_mistral_window_in_every_layer(self):
        self.check(model_type="mistral", sliding_window=7)

    def test_qwen2_window_in_the_upper_layers(self):
        self.check(model_type="qwen2", sliding_window=6, use_sliding_window=True, max_window_layers=1)

    def test_qwen2_window_by_layer_types(self):
        self.check(model_type="qwen2", sliding_window=6, use_sliding_window=True,
                   layer_types=["sliding_attention", "full_attention"])

    def test_qwen2_window_that_is_off(self):
        self.check(model_type="qwen2", sliding_window=6)

    def test_rope_linear(self):
        self.check(model_type="llama", rope_scaling={"rope_type": "linear", "factor": 4.0})

    def test_rope_llama3(self):
        self.check(model_type="llama", rope_theta=100.0,
                   rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                 "original_max_position_embeddings": 64})

    def test_rope_yarn(self):
        self.check(model_type="llama", rope_theta=100.0,
                   rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128})

    def test_head_sizes(self):
        for head_dim in (32, 64, 80, 128):
            self.check(model_type="llama", head_dim=head_dim, num_attention_heads=2, num_key_value_heads=1)


if __name__ == "__main__":
    unittest.main()
