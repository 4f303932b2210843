#include "weights/gguf_model.h"

#include <cmath>

#include "weights/checkpoint.h"
#include "weights/gguf_sample.h"
#include "weights/rope_config.h"
#include "weights/test_util.h"
#include "weights/weight_loader.h"

namespace briar {
namespace {

constexpr uint32_t kF32 = 0;

std::string floats(size_t count, float first) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += gguf_bytes(first + static_cast<float>(i));
  return out;
}

// One layer of 2 query heads and 1 KV head of 4 elements.
GgufBuilder tiny(const std::string& arch = "llama") {
  GgufBuilder b;
  b.key("general.architecture", arch)
      .key(arch + ".embedding_length", 8u)
      .key(arch + ".feed_forward_length", 16u)
      .key(arch + ".block_count", 1u)
      .key(arch + ".attention.head_count", 2u)
      .key(arch + ".attention.head_count_kv", 1u)
      .key(arch + ".context_length", 128u)
      .key(arch + ".attention.layer_norm_rms_epsilon", 1e-5f)
      .key(arch + ".rope.freq_base", 1e5f)
      .key("tokenizer.ggml.eos_token_id", 2u)
      .key("tokenizer.ggml.eot_token_id", 3u)
      .key("tokenizer.ggml.bos_token_id", 1u)
      .tensor("token_embd.weight", {8, 10}, kF32, floats(80, 0))
      .tensor("blk.0.attn_q.weight", {8, 8}, kF32, floats(64, 100))
      .tensor("blk.0.attn_k.weight", {8, 4}, kF32, floats(32, 200))
      .tensor("blk.0.attn_v.weight", {8, 4}, kF32, floats(32, 300))
      .tensor("blk.0.attn_k.bias", {4}, kF32, floats(4, 400))
      .tensor("blk.0.ffn_norm.weight", {8}, kF32, floats(8, 1))
      .tensor("strange.weight", {1}, kF32, floats(1, 0));
  return b;
}

struct Opened {
  std::string text;
  GgufContents gguf;
  HfConfig config;
};

Result<Opened> open(const GgufBuilder& builder) {
  std::string text = builder.text();
  auto gguf = parse_gguf(as_bytes(text), "m.gguf");
  if (!gguf) return gguf.error();
  auto config = gguf_config(*gguf);
  if (!config) return config.error();
  return Opened{std::move(text), *std::move(gguf), *std::move(config)};
}

TEST(GgufModel, HyperparametersAsAConfig) {
  const auto opened = open(tiny());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const HfConfig& c = opened->config;
  EXPECT_EQ(c.file(), "m.gguf");
  EXPECT_EQ(c.strings("architectures"), (std::vector<std::string>{"LlamaForCausalLM"}));
  EXPECT_EQ(c.string("model_type"), "llama");
  EXPECT_EQ(c.integer("hidden_size", {}), 8);
  EXPECT_EQ(c.integer("intermediate_size", {}), 16);
  EXPECT_EQ(c.integer("num_hidden_layers", {}), 1);
  EXPECT_EQ(c.integer("num_attention_heads", {}), 2);
  EXPECT_EQ(c.integer("num_key_value_heads", {}), 1);
  EXPECT_EQ(c.integer("max_position_embeddings", {}), 128);
  EXPECT_EQ(c.integer("vocab_size", {}), 10);
  EXPECT_EQ(static_cast<float>(c.real("rms_norm_eps", {})), 1e-5f);
  EXPECT_TRUE(c.boolean("tie_word_embeddings"));
  EXPECT_FALSE(c.has("head_dim"));
  EXPECT_EQ(c.integers("eos_token_id", {}), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(c.integer("bos_token_id", {}), 1);
  const RopeScaling rope = read_rope(c);
  EXPECT_EQ(rope.kind, RopeKind::kDefault);
  EXPECT_EQ(rope.theta, 1e5);
}

TEST(GgufModel, UntiedHead) {
  const auto opened = open(tiny().tensor("output.weight", {8, 10}, kF32, floats(80, 0)));
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_FALSE(opened->config.boolean("tie_word_embeddings"));
}

TEST(GgufModel, RopeScalings) {
  const auto linear =
      open(tiny().key("llama.rope.scaling.type", "linear").key("llama.rope.scaling.factor", 4.f));
  ASSERT_TRUE(linear.ok());
  EXPECT_EQ(read_rope(linear->config).kind, RopeKind::kLinear);
  EXPECT_EQ(read_rope(linear->config).factor, 4);
  const auto yarn = open(tiny()
                             .key("llama.rope.scaling.type", "yarn")
                             .key("llama.rope.scaling.factor", 2.f)
                             .key("llama.rope.scaling.original_context_length", 64u));
  ASSERT_TRUE(yarn.ok());
  EXPECT_EQ(read_rope(yarn->config).kind, RopeKind::kYarn);
  EXPECT_EQ(read_rope(yarn->config).original_max_position_embeddings, 64);
  // Llama 3's scaling comes as a tensor.
  auto divisors = open(tiny().tensor("rope_freqs.weight", {2}, kF32, floats(2, 1)));
  ASSERT_TRUE(divisors.ok());
  const RopeScaling per_pair = read_rope(divisors->config);
  EXPECT_EQ(per_pair.kind, RopeKind::kPerPair);
  EXPECT_EQ(per_pair.divisors, (std::vector<double>{1, 2}));
  ASSERT_TRUE(rename_gguf_tensors(divisors->gguf).ok());
  for (const TensorEntry& entry : divisors->gguf.tensors) {
    EXPECT_NE(entry.name, "rope_freqs.weight");
  }
  const auto nan = open(tiny().tensor("rope_freqs.weight", {2}, kF32, floats(2, NAN)));
  ASSERT_FALSE(nan.ok());
  expect_mentions(nan.error().message, {"m.gguf: rope_freqs.weight[0] is nan"});
}

TEST(GgufModel, Names) {
  auto opened = open(tiny());
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(rename_gguf_tensors(opened->gguf).ok());
  std::vector<std::string> names;
  std::vector<int64_t> heads;
  for (const TensorEntry& entry : opened->gguf.tensors) {
    names.push_back(entry.name);
    heads.push_back(entry.num_interleaved_heads);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight",
                "model.layers.0.self_attn.k_proj.bias",
                "model.layers.0.post_attention_layernorm.weight", "strange.weight"}));
  EXPECT_EQ(heads, (std::vector<int64_t>{0, 2, 1, 0, 1, 0, 0}));
}

TEST(GgufModel, Qwen2KeepsItsRows) {
  auto opened = open(tiny("qwen2"));
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->config.string("model_type"), "qwen2");
  ASSERT_TRUE(rename_gguf_tensors(opened->gguf).ok());
  for (const TensorEntry& entry : opened->gguf.tensors) {
    EXPECT_EQ(entry.num_interleaved_heads, 0) << entry.name;
  }
}

// Row r of the file holds 8 r, 8 r + 1, ... after its first number. A head of 4 rows stands as 0,
// 2, 1, 3 of Hugging Face's.
TEST(GgufModel, LoaderUndoesTheReorderedRows) {
  TempFolder folder;
  folder.write("m.gguf", tiny().text());
  const auto checkpoint = Checkpoint::open(folder.path() + "/m.gguf");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto device = make_cpu_device(2);
  const auto stream = device->make_stream();
  Arena arena(*device, 1 << 16, "weights");
  WeightLoader loader = WeightLoader::load(**checkpoint, arena, *stream);
  const std::string p = "model.layers.0.self_attn.";
  const TensorView qkv =
      loader.stacked({{p + "q_proj.weight", 8}, {p + "k_proj.weight", 4}, {p + "v_proj.weight", 4}},
                     8, DType::kFp32);
  std::vector<float> first;
  for (int64_t row = 0; row < 16; ++row) first.push_back(qkv.ptr<float>()[row * 8]);
  EXPECT_EQ(first, (std::vector<float>{100, 116, 108, 124, 132, 148, 140, 156,  // q: two heads
                                       200, 216, 208, 224,                      // k
                                       300, 308, 316, 324}));                   // v as it is
  const TensorView bias = loader.dense(p + "k_proj.bias", {4}, DType::kFp32);
  EXPECT_EQ(std::vector<float>(bias.ptr<float>(), bias.ptr<float>() + 4),
            (std::vector<float>{400, 402, 401, 403}));
}

std::string random_blocks(WireDType dtype, int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count * block_bytes(dtype); ++i) {
    // High bytes of fp16 scales stay below those of infinity, whichever byte they are.
    out += static_cast<char>((i * 37 + i / 7) % 120);
  }
  return out;
}

// What stays quantised holds the same numbers, in the same rows, as what is expanded.
TEST(GgufModel, QuantizedRowsAreTheExpandedOnes) {
  struct Case {
    WireDType dtype;
    BlockFormat format;
    uint32_t id;
  };
  for (const Case& c : {Case{WireDType::kQ8_0, BlockFormat::kQ8_0, 8},
                        Case{WireDType::kQ4_0, BlockFormat::kQ4_0, 2},
                        Case{WireDType::kQ4_1, BlockFormat::kQ4_1, 3},
                        Case{WireDType::kQ4_K, BlockFormat::kQ4_K, 12},
                        Case{WireDType::kQ6_K, BlockFormat::kQ6_K, 14}}) {
    SCOPED_TRACE(to_string(c.dtype));
    const int64_t blocks = 256 / block_elements(c.dtype);
    TempFolder folder;
    folder.write(
        "m.gguf",
        GgufBuilder()
            .key("general.architecture", "llama")
            .key("llama.attention.head_count", 3u)
            .tensor("blk.0.attn_q.weight", {256, 18}, c.id, random_blocks(c.dtype, 18 * blocks))
            .tensor("blk.0.attn_v.weight", {256, 5}, c.id, random_blocks(c.dtype, 5 * blocks))
            .text());
    const auto checkpoint = Checkpoint::open(folder.path() + "/m.gguf");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    const auto device = make_cpu_device(2);
    const auto stream = device->make_stream();
    Arena arena(*device, 1 << 18, "weights");
    WeightLoader loader = WeightLoader::load(**checkpoint, arena, *stream);
    const std::string p = "model.layers.0.self_attn.";
    const std::vector<WeightLoader::RowBlock> rows = {{p + "q_proj.weight", 18},
                                                      {p + "v_proj.weight", 5}};
    ASSERT_EQ(loader.block_format(rows[0].name), c.format);
    const TensorView packed = loader.quantized(rows, 256, c.format);
    const TensorView dense = loader.stacked(rows, 256, DType::kFp32);
    EXPECT_EQ(loader.describe_blocks(),
              fmt::format("2 {0} expanded to fp32, 2 {0} kept", to_string(c.dtype)));
    const PackedBlock layout = packed_block(c.format);
    for (int64_t row = 0; row < 23; ++row) {
      const uint8_t* block = packed.ptr<uint8_t>() + row / kPanelRows * panel_bytes(c.format, 256);
      for (int64_t at = 0; at < 256; block += layout.bytes()) {
        for (int64_t g = 0; g < layout.num_groups; ++g, at += kGroupColumns) {
          float values[kGroupColumns];
          unpack_group(c.format, block, g, row % kPanelRows, values);
          for (int64_t i = 0; i < kGroupColumns; ++i) {
            const float want = dense.ptr<float>()[row * 256 + at + i];
            // Q6_K's last product may be rounded once more in the one than in the other.
            ASSERT_NEAR(values[i], want, std::abs(want) * 0x1p-23f) << row << " " << at + i;
          }
        }
      }
    }
  }
}

TEST(GgufModel, QuantizedScalesMustBeFinite) {
  std::string blocks = random_blocks(WireDType::kQ4_1, 2);
  blocks[20 + 3] = 0x7c;  // the second block's m
  TempFolder folder;
  folder.write("m.gguf", GgufBuilder()
                             .key("general.architecture", "llama")
                             .tensor("blk.0.attn_v.weight", {32, 2}, 3, blocks)
                             .text());
  const auto checkpoint = Checkpoint::open(folder.path() + "/m.gguf");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto device = make_cpu_device(1);
  const auto stream = device->make_stream();
  Arena arena(*device, 1 << 16, "weights");
  WeightLoader loader = WeightLoader::load(**checkpoint, arena, *stream);
  expect_mentions(
      user_error_of([&] {
        loader.quantized({{"model.layers.0.self_attn.v_proj.weight", 2}}, 32, BlockFormat::kQ4_1);
      }),
      {"/m.gguf: model.layers.0.self_attn.v_proj.weight[1, 0] is"});
}

TEST(GgufModel, RefusesWhatItCannotRun) {
  const auto error = [](const GgufBuilder& b) {
    const auto opened = open(b);
    return opened ? "no error" : opened.error().message;
  };
  expect_mentions(error(GgufBuilder().key("general.architecture", "mamba")),
                  {"m.gguf: general.architecture is \"mamba\"; supported: llama, qwen2, qwen3"});
  expect_mentions(error(GgufBuilder()), {"general.architecture is \"\""});
  expect_mentions(error(GgufBuilder().key("general.architecture", 1u)), {"is of type uint32"});
  expect_mentions(error(tiny().key("llama.expert_count", 8u)), {"llama.expert_count is 8"});
  expect_mentions(error(tiny().key("split.count", 3u)), {"one of 3 parts"});
  auto opened = open(tiny());
  ASSERT_TRUE(opened.ok());
  opened->gguf.tensors[1].shape[0] = 7;
  const Status status = rename_gguf_tensors(opened->gguf);
  ASSERT_FALSE(status.ok());
  expect_mentions(status.error().message, {"has 7 rows, which 2 heads"});
}

TEST(GgufModel, AFileOfAnotherKindIsRefused) {
  TempFolder folder;
  folder.write("model.bin", "PK\3\4 and so on");
  for (const std::string& message :
       {Checkpoint::open(folder.path() + "/model.bin").error().message,
        HfConfig::open(folder.path() + "/model.bin").error().message}) {
    expect_mentions(message, {"/model.bin: does not begin with \"GGUF\" (not a GGUF file?)"});
  }
}

TEST(GgufModel, EndingsComeFromTheMetadata) {
  TempFolder folder;
  folder.write("m.gguf", tiny().text());
  const std::string path = folder.path() + "/m.gguf";
  const auto config = HfConfig::open(path);
  ASSERT_TRUE(config.ok());
  const auto generation = GenerationConfig::open(path, *config);
  ASSERT_TRUE(generation.ok()) << generation.error().message;
  EXPECT_EQ(generation->eos_token_ids, (std::vector<int64_t>{2, 3}));
  EXPECT_FALSE(generation->do_sample);
}

}  // namespace
}  // namespace briar
