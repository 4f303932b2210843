#!/usr/bin/env python3
"""Makes broken copies of a small gpt-oss model folder, each with one fault.

usage: make_malformed_models.py MODEL_FOLDER TARGET_FOLDER

TARGET_FOLDER/manifest.json lists {"dir", "must_mention"}: loading TARGET_FOLDER/dir must fail with
exit code 1 and exactly one error line, which holds every text of must_mention. Files that a fault
does not touch are hard links where the file system allows it.
"""
import copy
import json
import os
import shutil
import struct
import sys

EXPERTS = "model.layers.1.mlp.experts."
ATTENTION = "model.layers.0.self_attn."
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
DELETE = object()

CASES = []


class Case:
    """One folder in the making: what of the source model is kept, changed in memory."""

    def __init__(self, source):
        self.config = copy.deepcopy(source.config)
        self.generation = copy.deepcopy(source.generation)
        self.tensors = dict(source.tensors)  # name -> (dtype, shape, bytes), in the file's order
        self.touched_weights = False
        self.files = {}  # name -> bytes that replace a file, or DELETE

    def set(self, key, value):
        section = self.config
        *path, last = key.split(".")
        for part in path:
            section = section[part]
        if value is DELETE:
            del section[last]
        else:
            section[last] = value

    def patch(self, name, offset, value):
        dtype, shape, data = self.tensors[name]
        self.put(name, dtype, shape, data[:offset] + value + data[offset + len(value):])

    def put(self, name, dtype, shape, data):
        self.tensors[name] = (dtype, shape, data)
        self.touched_weights = True

    def drop(self, *names):
        for name in names:
            del self.tensors[name]
        self.touched_weights = True

    def weights(self):
        return safetensors(self.tensors)

    def shard(self):
        """Two shards and an index in place of the single file; returns the index."""
        names = list(self.tensors)
        halves = [names[:len(names) // 2], names[len(names) // 2:]]
        shards = [f"model-0000{i + 1}-of-00002.safetensors" for i in range(2)]
        self.files[WEIGHTS] = DELETE
        index = {"metadata": {}, "weight_map": {}}
        for shard, half in zip(shards, halves):
            self.files[shard] = safetensors({name: self.tensors[name] for name in half})
            index["weight_map"].update({name: shard for name in half})
        self.put_index(index)
        return index, shards

    def put_index(self, index):
        self.files[INDEX] = json.dumps(index).encode()


class Source:
    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        with open(os.path.join(folder, "generation_config.json"), encoding="utf-8") as file:
            self.generation = json.load(file)
        with open(os.path.join(folder, WEIGHTS), "rb") as file:
            data = file.read()
        header, start = split(data)
        self.tensors = {}
        for name, entry in sorted(header.items(), key=lambda item: item[0]):
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                self.tensors[name] = (entry["dtype"], entry["shape"],
                                      data[start + begin:start + end])


def split(data):
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + size]), 8 + size


def join(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors(tensors):
    header, parts, offset = {}, [], 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    return join(header, b"".join(parts))


def case(*must_mention):
    """Registers a function(case) that breaks one folder, named after it."""

    def register(function):
        CASES.append((function.__name__, list(must_mention), function))
        return function

    return register


# ---- config.json ---------------------------------------------------------------------------------

def config_case(name, key, value, *must_mention):
    def apply(c):
        c.set(key, value)

    CASES.append((name, ["config.json", *must_mention], apply))


def config_file_case(name, text, *must_mention):
    def apply(c):
        c.files["config.json"] = text

    CASES.append((name, ["config.json", *must_mention], apply))


config_file_case("config_missing", DELETE)
config_file_case("config_empty", b"")
config_file_case("config_not_json", b"hidden_size: 288\n")
config_file_case("config_truncated", b'{"hidden_size": 288, "num_')
config_file_case("config_is_a_list", b"[1, 2]")
config_file_case("config_is_binary", bytes(range(256)))
config_file_case("config_nested_deep", b"[" * 100000)
config_file_case("config_without_anything", b"{}")

config_case("architecture_unknown", "architectures", ["NoSuchModelForCausalLM"],
            "NoSuchModelForCausalLM")
config_case("architecture_not_a_list", "architectures", 5, "architectures", "5")
config_case("hidden_size_missing", "hidden_size", DELETE, "hidden_size")
config_case("hidden_size_string", "hidden_size", "288", "hidden_size", '"288"')
config_case("hidden_size_zero", "hidden_size", 0, "hidden_size", "0")
config_case("hidden_size_negative", "hidden_size", -288, "hidden_size", "-288")
config_case("hidden_size_fraction", "hidden_size", 288.5, "hidden_size")
config_case("hidden_size_huge", "hidden_size", 2**40, "hidden_size", str(2**40))
config_case("hidden_size_beyond_64_bits", "hidden_size", 2**70, "hidden_size")
config_case("hidden_size_null", "hidden_size", None, "hidden_size")
config_case("vocab_size_negative", "vocab_size", -1, "vocab_size", "-1")
config_case("vocab_size_huge", "vocab_size", 2**62, "vocab_size", str(2**62))
config_case("heads_not_divisible", "num_attention_heads", 7, "num_attention_heads", "7")
config_case("kv_heads_zero", "num_key_value_heads", 0, "num_key_value_heads", "0")
config_case("head_dim_zero", "head_dim", 0, "head_dim", "0")
config_case("head_dim_odd", "head_dim", 63, "head_dim", "63")
config_case("layers_zero", "num_hidden_layers", 0, "num_hidden_layers", "0")
config_case("layers_huge", "num_hidden_layers", 10**9, "num_hidden_layers", str(10**9))
config_case("layers_list", "num_hidden_layers", [4], "num_hidden_layers", "[4]")
config_case("layer_types_short", "layer_types", ["full_attention"], "layer_types")
config_case("layer_types_unknown", "layer_types",
            ["full_attention", "linear_attention", "full_attention", "full_attention"],
            "layer_types", "linear_attention")
config_case("layer_types_numbers", "layer_types", [0, 1, 0, 1], "layer_types")
config_case("experts_zero", "num_local_experts", 0, "num_local_experts", "0")
config_case("experts_per_token_too_many", "num_experts_per_tok", 13, "13")
config_case("experts_per_token_disagree", "num_experts_per_tok", 3, "experts_per_tok", "3")
config_case("sliding_window_negative", "sliding_window", -128, "sliding_window", "-128")
config_case("eps_string", "rms_norm_eps", "1e-5", "rms_norm_eps", '"1e-5"')
config_case("eps_negative", "rms_norm_eps", -1.0, "rms_norm_eps")
config_case("rope_scaling_missing", "rope_scaling", DELETE, "rope")
config_case("rope_type_unknown", "rope_scaling.rope_type", "spiral", "rope_type", "spiral")
config_case("rope_factor_zero", "rope_scaling.factor", 0, "factor", "0")
config_case("rope_scaling_string", "rope_scaling", "yarn", "rope_scaling", "yarn")
config_case("rope_theta_negative", "rope_theta", -150000, "rope_theta", "-150000")
config_case("tie_word_embeddings_string", "tie_word_embeddings", "false", "tie_word_embeddings",
            '"false"')


def shape_case(name, key, value, *must_mention):
    """A config that is legal in itself and does not fit the tensors."""

    def apply(c):
        c.set(key, value)

    CASES.append((name, list(must_mention), apply))


shape_case("config_lies_hidden_size", "hidden_size", 320, "model.embed_tokens.weight", "[512, 288]",
           "[512, 320]")
shape_case("config_lies_vocab_size", "vocab_size", 500, "model.embed_tokens.weight", "[512, 288]",
           "[500, 288]")
shape_case("config_lies_heads", "num_attention_heads", 8, "self_attn.q_proj.weight", "[384, 288]",
           "[512, 288]")
shape_case("config_lies_experts", "num_local_experts", 16, "mlp.router.weight", "[12, 288]",
           "[16, 288]")
shape_case("config_lies_intermediate_size", "intermediate_size", 192, "down_proj_blocks",
           "[12, 288, 5, 16]", "[12, 288, 6, 16]")


@case("model.layers.4.", "missing")
def config_lies_more_layers(c):
    c.set("num_hidden_layers", 5)
    c.set("layer_types", c.config["layer_types"] + ["full_attention"])


@case("model.layers.3.", "unused")
def config_lies_fewer_layers(c):
    c.set("num_hidden_layers", 3)
    c.set("layer_types", c.config["layer_types"][:3])


# ---- generation_config.json ----------------------------------------------------------------------

def generation_case(name, text, *must_mention):
    def apply(c):
        c.files["generation_config.json"] = text

    CASES.append((name, ["generation_config.json", *must_mention], apply))


generation_case("generation_not_json", b"{")
generation_case("generation_empty", b"")
generation_case("generation_is_a_list", b"[]")
generation_case("generation_eos_string", b'{"eos_token_id": "1"}', "eos_token_id", '"1"')
generation_case("generation_eos_beyond_vocabulary", b'{"eos_token_id": [1, 512]}', "eos_token_id",
                "512")
generation_case("generation_temperature_negative", b'{"eos_token_id": 1, "temperature": -1}',
                "temperature", "-1")


# ---- the files of the weights --------------------------------------------------------------------

@case("safetensors")
def weights_missing(c):
    c.files[WEIGHTS] = DELETE


@case(WEIGHTS)
def weights_empty(c):
    c.files[WEIGHTS] = b""


@case(WEIGHTS)
def weights_are_a_folder(c):
    c.files[WEIGHTS] = None


@case(WEIGHTS)
def weights_are_a_git_lfs_pointer(c):
    c.files[WEIGHTS] = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 6581472\n"


@case(WEIGHTS, "truncated")
def weights_truncated_data(c):
    c.files[WEIGHTS] = c.weights()[:-1000]


@case(WEIGHTS, "truncated")
def weights_truncated_header(c):
    c.files[WEIGHTS] = c.weights()[:500]


@case(WEIGHTS, "18446744073709551615")
def weights_header_length_huge(c):
    c.files[WEIGHTS] = b"\xff" * 8 + c.weights()[8:]


@case(WEIGHTS)
def weights_header_not_json(c):
    data = c.weights()
    c.files[WEIGHTS] = data[:9] + b"?" + data[10:]


@case(WEIGHTS, "end of the data")
def weights_trailing_bytes(c):
    c.files[WEIGHTS] = c.weights() + b"more"


def header_case(name, edit, *must_mention):
    """edit(header) changes the parsed header; the data stays."""

    def apply(c):
        data = c.weights()
        header, start = split(data)
        c.files[WEIGHTS] = join(edit(header) or header, data[start:])

    CASES.append((name, [WEIGHTS, *must_mention], apply))


def entry_case(name, key, value, *must_mention):
    def edit(header):
        header["model.norm.weight"][key] = value

    header_case(name, edit, "model.norm.weight", *must_mention)


entry_case("header_dtype_unknown", "dtype", "Q7", "Q7")
entry_case("header_dtype_number", "dtype", 5, "5")
entry_case("header_shape_negative", "shape", [-288], "-288")
entry_case("header_shape_overflows", "shape", [2**62, 2**62], str(2**62))
entry_case("header_shape_too_large", "shape", [1000, 1000], "2000000")
entry_case("header_offsets_reversed", "data_offsets", [576, 0], "576")
entry_case("header_offsets_three", "data_offsets", [0, 576, 576], "data_offsets")
entry_case("header_offsets_beyond_the_file", "data_offsets", [10**15, 10**15 + 576],
           str(10**15 + 576))
entry_case("header_offsets_float", "data_offsets", [0, 1e19], "1e+19")
entry_case("header_offsets_overlap", "data_offsets", [0, 576], "overlap")


def twice(header):
    text = json.dumps(header)
    return (text[:-1] + ', "lm_head.weight": ' + json.dumps(header["lm_head.weight"]) + "}").encode()


header_case("header_tensor_twice", twice, "lm_head.weight", "twice")


# ---- shards --------------------------------------------------------------------------------------

@case("model-00002-of-00002.safetensors", "missing")
def shard_missing(c):
    _, shards = c.shard()
    del c.files[shards[1]]


@case("model-00002-of-00002.safetensors", "truncated")
def shard_truncated(c):
    _, shards = c.shard()
    c.files[shards[1]] = c.files[shards[1]][:-100]


@case("model-00001-of-00002.safetensors")
def shard_empty(c):
    _, shards = c.shard()
    c.files[shards[0]] = b""


@case("lm_head.weight", "model-00001-of-00002.safetensors")
def shard_twice(c):
    _, shards = c.shard()
    c.files[INDEX] = DELETE
    c.files["model-00003-of-00002.safetensors"] = c.files[shards[0]]


@case(INDEX, "lm_head.weight", "model-00002-of-00002.safetensors")
def index_names_the_wrong_shard(c):
    index, shards = c.shard()
    index["weight_map"]["lm_head.weight"] = shards[1]
    c.put_index(index)


@case(INDEX, "no.such.weight")
def index_promises_a_tensor(c):
    index, shards = c.shard()
    index["weight_map"]["no.such.weight"] = shards[0]
    c.put_index(index)


@case(INDEX, "../x")
def index_points_outside(c):
    index, _ = c.shard()
    index["weight_map"]["lm_head.weight"] = "../x"
    c.put_index(index)


@case(INDEX, "/etc/passwd")
def index_points_to_the_root(c):
    index, _ = c.shard()
    index["weight_map"]["lm_head.weight"] = "/etc/passwd"
    c.put_index(index)


@case(INDEX, "weight_map")
def index_without_map(c):
    c.shard()
    c.put_index({"metadata": {}})


@case(INDEX)
def index_not_json(c):
    c.shard()
    c.files[INDEX] = b"not json"


@case(INDEX, "lm_head.weight", "7")
def index_with_a_number(c):
    index, _ = c.shard()
    index["weight_map"]["lm_head.weight"] = 7
    c.put_index(index)


# ---- tensors -------------------------------------------------------------------------------------

@case(ATTENTION + "k_proj.weight", "missing")
def tensor_missing(c):
    c.drop(ATTENTION + "k_proj.weight")


@case(EXPERTS + "down_proj_scales", ATTENTION + "sinks", "missing")
def tensors_missing_scales_too(c):
    c.drop(EXPERTS + "down_proj_scales", ATTENTION + "sinks")


@case("model.layers.0.extra.weight", "unused")
def tensor_extra(c):
    c.put("model.layers.0.extra.weight", "BF16", [1], b"\0\0")


@case("model.norm.weight", "[144, 2]", "[288]")
def tensor_of_wrong_shape(c):
    c.put("model.norm.weight", "BF16", [144, 2], c.tensors["model.norm.weight"][2])


@case(ATTENTION + "q_proj.weight", "[288, 384]", "[384, 288]")
def tensor_transposed(c):
    c.put(ATTENTION + "q_proj.weight", "BF16", [288, 384],
          c.tensors[ATTENTION + "q_proj.weight"][2])


@case("model.norm.weight", "I16")
def tensor_of_wrong_dtype(c):
    c.put("model.norm.weight", "I16", [288], c.tensors["model.norm.weight"][2])


@case(WEIGHTS, "lm_head.weight[1, 12]", "nan")
def tensor_with_nan(c):
    c.patch("lm_head.weight", 2 * (288 + 12), b"\xc0\x7f")


@case(WEIGHTS, ATTENTION + "sinks[5]", "-inf")
def tensor_with_infinity(c):
    c.patch(ATTENTION + "sinks", 10, b"\x80\xff")


@case(WEIGHTS, EXPERTS + "gate_up_proj_scales[0, 1, 3]", "255")
def scale_of_255(c):
    c.patch(EXPERTS + "gate_up_proj_scales", 9 + 3, b"\xff")


def write_case(source, target, fault):
    os.makedirs(target)
    c = Case(source)
    fault(c)
    if c.touched_weights and WEIGHTS not in c.files:
        c.files[WEIGHTS] = c.weights()
    files = {"config.json": json.dumps(c.config, indent=2).encode(),
             "generation_config.json": json.dumps(c.generation).encode(), **c.files}
    for name in os.listdir(source.folder):
        if name not in files:
            place(os.path.join(source.folder, name), os.path.join(target, name))
    for name, data in files.items():
        path = os.path.join(target, name)
        if data is None:
            os.mkdir(path)
        elif data is not DELETE:
            with open(path, "wb") as file:
                file.write(data)


def place(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = Source(sys.argv[1]), sys.argv[2]
    if os.path.exists(target):
        if not os.path.exists(os.path.join(target, "manifest.json")):
            sys.exit(f"{target} exists and is not an earlier output of this script")
        shutil.rmtree(target)
    manifest = []
    for name, must_mention, fault in CASES:
        write_case(source, os.path.join(target, name), fault)
        manifest.append({"dir": name, "must_mention": must_mention})
    # Paths that are no folders at all.
    with open(os.path.join(target, "a_file"), "w", encoding="utf-8"):
        pass
    manifest.append({"dir": "a_file", "must_mention": ["a_file"]})
    manifest.append({"dir": "no_such_folder", "must_mention": ["no_such_folder"]})
    os.mkdir(os.path.join(target, "empty_folder"))
    manifest.append({"dir": "empty_folder", "must_mention": ["empty_folder"]})
    with open(os.path.join(target, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
    print(f"{len(manifest)} cases in {target}")


if __name__ == "__main__":
    main()
