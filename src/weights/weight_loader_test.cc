#include "weights/weight_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>

#include "weights/convert.h"
#include "weights/hf_config.h"
#include "weights/mxfp4.h"
#include "weights/test_util.h"

namespace briar {
namespace {

std::string model_dir(const std::string& name) {
  return std::string(BRIAR_ASSETS_DIR) + "/models/" + name;
}

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& folder) {
  auto checkpoint = Checkpoint::open(folder);
  if (!checkpoint) throw UserError(checkpoint.error());
  return *std::move(checkpoint);
}

// Plans and loads what `model(loader)` asks for.
class Loaded {
 public:
  template <class Model>
  Loaded(const Checkpoint& checkpoint, const Model& model, int num_threads = 2)
      : device_(make_cpu_device(num_threads)), stream_(device_->make_stream()) {
    WeightLoader plan = WeightLoader::plan(checkpoint);
    model(plan);
    plan.finish();
    arena_.emplace(*device_, plan.arena_bytes(), "weights");
    WeightLoader load = WeightLoader::load(
        checkpoint, *arena_, *stream_,
        [this](int64_t done, int64_t total) { progress.emplace_back(done, total); });
    model(load);
    load.finish();
    EXPECT_EQ(arena_->used_bytes(), plan.arena_bytes());
    EXPECT_EQ(load.arena_bytes(), plan.arena_bytes());
    EXPECT_EQ(load.file_bytes(), plan.file_bytes());
  }
  std::vector<std::pair<int64_t, int64_t>> progress;

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::optional<Arena> arena_;
};

// Loads a folder that holds `builder` as its only file.
template <class Model>
void load_built(const SafetensorsBuilder& builder, const Model& model) {
  TempFolder folder;
  folder.write("model.safetensors", builder.text());
  const auto checkpoint = open_checkpoint(folder.path());
  Loaded loaded(*checkpoint, model);
}

// The tensors of gpt-oss, as its model file will ask for them.
struct GptOss {
  TensorView embedding, qkv, qkv_bias, norm, sinks;
  WeightLoader::ExpertWeights gate_up, down;

  GptOss(const HfConfig& config, WeightLoader& w, DType dtype, DType expert_dtype) {
    const IntRange any{1, 1 << 20};
    const int64_t hidden = config.integer("hidden_size", any);
    const int64_t inner = config.integer("intermediate_size", any);
    const int64_t experts = config.integer("num_local_experts", any);
    const int64_t heads = config.integer("num_attention_heads", any);
    const int64_t q_rows = heads * 64, kv_rows = config.integer("num_key_value_heads", any) * 64;
    const int64_t vocab = config.integer("vocab_size", any);
    embedding = w.dense("model.embed_tokens.weight", {vocab, hidden}, dtype);
    w.dense("lm_head.weight", {vocab, hidden}, dtype);
    norm = w.dense("model.norm.weight", {hidden}, DType::kFp32);
    for (int64_t i = 0; i < config.integer("num_hidden_layers", any); ++i) {
      const std::string p = fmt::format("model.layers.{}.", i);
      const std::string a = p + "self_attn.", m = p + "mlp.experts.";
      w.dense(p + "input_layernorm.weight", {hidden}, DType::kFp32);
      w.dense(p + "post_attention_layernorm.weight", {hidden}, DType::kFp32);
      const TensorView layer_qkv = w.stacked({{a + "q_proj.weight", q_rows},
                                              {a + "k_proj.weight", kv_rows},
                                              {a + "v_proj.weight", kv_rows}},
                                             hidden, dtype);
      const TensorView layer_bias = w.stacked(
          {{a + "q_proj.bias", q_rows}, {a + "k_proj.bias", kv_rows}, {a + "v_proj.bias", kv_rows}},
          -1, DType::kFp32);
      w.dense(a + "o_proj.weight", {hidden, q_rows}, dtype);
      w.dense(a + "o_proj.bias", {hidden}, DType::kFp32);
      const TensorView layer_sinks = w.dense(a + "sinks", {heads}, DType::kFp32);
      w.dense(p + "mlp.router.weight", {experts, hidden}, dtype);
      w.dense(p + "mlp.router.bias", {experts}, DType::kFp32);
      w.dense(m + "gate_up_proj_bias", {experts, 2 * inner}, DType::kFp32);
      w.dense(m + "down_proj_bias", {experts, hidden}, DType::kFp32);
      const auto layer_gate_up =
          w.mxfp4_experts(m + "gate_up_proj_blocks", m + "gate_up_proj_scales", experts, 2 * inner,
                          hidden, expert_dtype);
      const auto layer_down = w.mxfp4_experts(m + "down_proj_blocks", m + "down_proj_scales",
                                              experts, hidden, inner, expert_dtype);
      if (i != 1) continue;
      qkv = layer_qkv, qkv_bias = layer_bias, sinks = layer_sinks;
      gate_up = layer_gate_up, down = layer_down;
    }
  }
};

// The two sums of weight_sums.py.
struct Sums {
  double sum = 0;
  double weighted = 0;
};

template <class Get>
Sums sums_of(int64_t count, const Get& get) {
  Sums sums;
  for (int64_t i = 0; i < count; ++i) {
    sums.sum += get(i);
    sums.weighted += static_cast<double>(i % 1021 + 1) * get(i);
  }
  return sums;
}

// Of the 16 bits of each element, whether kept as bf16 or widened to fp32.
Sums bit_sums(const TensorView& t) {
  return sums_of(t.num_elements(), [&](int64_t i) -> double {
    if (t.dtype() == DType::kBf16) return t.ptr<Bf16>()[i].bits;
    const uint32_t bits = std::bit_cast<uint32_t>(t.ptr<float>()[i]);
    return (bits & 0xffff) != 0 ? NAN : bits >> 16;
  });
}

Sums value_sums(const WeightLoader::ExpertWeights& experts) {
  const TensorView& v = experts.values;
  std::vector<float> decoded;
  if (v.dtype() == DType::kMxfp4) {
    decoded.resize(static_cast<size_t>(v.num_elements()));
    decode_mxfp4({v.ptr<uint8_t>(), static_cast<size_t>(v.num_bytes())},
                 {experts.scales.ptr<uint8_t>(), static_cast<size_t>(experts.scales.num_bytes())},
                 std::span(decoded));
  }
  return sums_of(v.num_elements(), [&](int64_t i) -> double {
    if (!decoded.empty()) return decoded[static_cast<size_t>(i)];
    return v.dtype() == DType::kBf16 ? to_float(v.ptr<Bf16>()[i]) : v.ptr<float>()[i];
  });
}

void expect_sums(const Sums& sums, double sum, double weighted) {
  EXPECT_EQ(sums.sum, sum);
  EXPECT_EQ(sums.weighted, weighted);
}

// Figures printed by weight_sums.py, which shares no code with the loader.
struct Expected {
  const char* name;
  Sums embedding, q, k, v, norm, gate_up, down;
};
const Expected kExpected[] = {
    {"tiny-harmony",
     {1321317028097, 675193857813633},
     {6281774336, 3207952530456},
     {785618286, 400246967657},
     {786787201, 400694109717},
     {3129554, 301997439},
     {618.875, 332534.453125},
     {-162.84765625, -85433.48828125}},
    {"tiny-harmony-draft",
     {1270171827789, 649051315499055},
     {6293006892, 3204388258673},
     {787550846, 400944812453},
     {781745368, 398354628884},
     {3129791, 302031618},
     {-437.46875, -236188.34375},
     {-10.53125, 22344.25}},
    {"gpt-oss-random",
     {4800499547, 2447603557900},
     {3528298348, 1798768625948},
     {1178574097, 600055455666},
     {1182157962, 602654968342},
     {4679381, 676135639},
     {273.109375, 73110.421875},
     {1.23828125, 1421.16796875}},
};

void check_bundled(const Expected& e, DType dtype, DType expert_dtype) {
  SCOPED_TRACE(fmt::format("{} {} {}", e.name, to_string(dtype), to_string(expert_dtype)));
  const auto config = HfConfig::open(model_dir(e.name));
  ASSERT_TRUE(config) << config.error().message;
  const auto checkpoint = open_checkpoint(model_dir(e.name));
  std::optional<GptOss> model;
  Loaded loaded(*checkpoint,
                [&](WeightLoader& w) { model.emplace(*config, w, dtype, expert_dtype); });
  EXPECT_EQ(loaded.progress.back(), std::pair(checkpoint->num_bytes(), checkpoint->num_bytes()));
  expect_sums(bit_sums(model->embedding), e.embedding.sum, e.embedding.weighted);
  expect_sums(bit_sums(model->norm), e.norm.sum, e.norm.weighted);
  const int64_t rows = model->qkv.size(0);
  const auto part = [&](int64_t begin, int64_t end, const Sums& sums) {
    expect_sums(bit_sums(model->qkv.rows(begin, end)), sums.sum, sums.weighted);
  };
  part(0, rows - 256, e.q);
  part(rows - 256, rows - 128, e.k);
  part(rows - 128, rows, e.v);
  expect_sums(value_sums(model->gate_up), e.gate_up.sum, e.gate_up.weighted);
  expect_sums(value_sums(model->down), e.down.sum, e.down.weighted);
  EXPECT_EQ(static_cast<bool>(model->down.scales), expert_dtype == DType::kMxfp4);
}

TEST(WeightLoader, LoadsTheBundledModels) {
  for (const Expected& expected : kExpected) {
    check_bundled(expected, DType::kBf16, DType::kMxfp4);
    check_bundled(expected, DType::kFp32, DType::kFp32);
    check_bundled(expected, DType::kBf16, DType::kBf16);
  }
}

TEST(WeightLoader, ThreadsDoNotChangeTheResult) {
  const auto config = HfConfig::open(model_dir("gpt-oss-random"));
  const auto checkpoint = open_checkpoint(model_dir("gpt-oss-random"));
  for (const int num_threads : {1, 3}) {
    std::optional<GptOss> model;
    Loaded loaded(
        *checkpoint,
        [&](WeightLoader& w) { model.emplace(*config, w, DType::kFp32, DType::kFp32); },
        num_threads);
    expect_sums(bit_sums(model->embedding), 4800499547, 2447603557900);
    expect_sums(value_sums(model->down), 1.23828125, 1421.16796875);
  }
}

// An independent reading of IEEE half precision.
float f16_ref(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double mantissa = bits & 1023;
  double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) magnitude = mantissa == 0 ? INFINITY : NAN;
  return static_cast<float>((bits & 0x8000) != 0 ? -magnitude : magnitude);
}

// All 65,536 patterns of both 16-bit types, from an odd address, to both targets.
TEST(Convert, EveryPatternOfThe16BitTypes) {
  std::vector<uint8_t> storage(1 + 2 * 65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    std::memcpy(&storage[1 + 2 * i], &bits, 2);
  }
  const auto bytes = std::span<const uint8_t>(storage).subspan(1);
  for (const WireDType type : {WireDType::kBf16, WireDType::kF16}) {
    std::vector<float> fp32(65536);
    std::vector<Bf16> bf16(65536);
    EXPECT_FALSE(convert_dense(type, bytes, DType::kFp32, fp32.data()));
    EXPECT_FALSE(convert_dense(type, bytes, DType::kBf16, bf16.data()));
    for (uint32_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      const float expected = type == WireDType::kF16 ? f16_ref(bits) : to_float(Bf16{bits});
      ASSERT_EQ(std::bit_cast<uint32_t>(dense_element(type, bytes, i)),
                std::bit_cast<uint32_t>(fp32[i]))
          << i;
      const auto one = bytes.subspan(2 * i, 2);
      float alone = 0;
      ASSERT_EQ(convert_dense(type, one, DType::kFp32, &alone), std::isfinite(expected)) << i;
      if (!std::isfinite(expected)) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(fp32[i]), std::bit_cast<uint32_t>(expected)) << i;
      ASSERT_EQ(bf16[i].bits, to_bf16(expected).bits) << i;
    }
  }
}

TEST(Convert, RoundsFp32AndRefusesWhatBf16CannotHold) {
  const std::vector<float> values = {1.00390625f, 1.01171875f, -3.3e38f, 1e-40f, 0.1f};
  const auto bytes = std::span(reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4);
  std::vector<Bf16> out(values.size());
  EXPECT_TRUE(convert_dense(WireDType::kF32, bytes, DType::kBf16, out.data()));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(out[i].bits, to_bf16(values[i]).bits);
  const float too_large = 3.4e38f;  // finite in fp32, infinite after rounding
  const auto one = std::span(reinterpret_cast<const uint8_t*>(&too_large), 4);
  float same = 0;
  EXPECT_TRUE(convert_dense(WireDType::kF32, one, DType::kFp32, &same));
  EXPECT_EQ(same, too_large);
  EXPECT_FALSE(convert_dense(WireDType::kF32, one, DType::kBf16, out.data()));
  EXPECT_EQ(find_not_finite(WireDType::kF32, one, DType::kBf16), 0);
  EXPECT_EQ(find_not_finite(WireDType::kF32, one, DType::kFp32), std::nullopt);
}

TEST(WeightLoader, PlanReadsNothingAndCounts) {
  TempFolder folder;
  folder.write("model.safetensors", SafetensorsBuilder()
                                        .add("w", "BF16", "[3,2]", std::vector<uint16_t>(6, 0x7fc0))
                                        .add("f", "F16", "[3]", std::vector<uint16_t>(3))
                                        .text());
  const auto checkpoint = open_checkpoint(folder.path());
  WeightLoader plan = WeightLoader::plan(*checkpoint);
  const TensorView w = plan.dense("w", {3, 2}, DType::kFp32);
  EXPECT_EQ(w.describe(), "fp32 [3, 2]");
  EXPECT_EQ(w.data(), nullptr);
  EXPECT_TRUE(w);
  EXPECT_TRUE(plan.is_plan());
  EXPECT_TRUE(plan.has("f"));
  EXPECT_FALSE(plan.has("g"));
  EXPECT_EQ(plan.stored_dtype("w"), DType::kBf16);
  EXPECT_EQ(plan.stored_dtype("f"), std::nullopt);
  EXPECT_EQ(plan.stored_dtype("g"), std::nullopt);
  EXPECT_EQ(plan.arena_bytes(), 64);
  EXPECT_EQ(plan.file_bytes(), 12);
  plan.dense("f", {3}, DType::kFp32);
  EXPECT_EQ(plan.arena_bytes(), 128);
  plan.finish();
}

TEST(WeightLoader, StacksBlocks) {
  const auto builder = SafetensorsBuilder()
                           .add("q", "F32", "[2,3]", std::vector<float>{1, 2, 3, 4, 5, 6})
                           .add("k", "F32", "[1,3]", std::vector<float>{7, 8, 9})
                           .add("v", "F16", "[1,3]", std::vector<uint16_t>{0x3c00, 0, 0xc000})
                           .add("qb", "F32", "[2]", std::vector<float>{1, 2})
                           .add("kb", "F32", "[1]", std::vector<float>{3});
  load_built(builder, [](WeightLoader& w) {
    const TensorView t = w.stacked({{"q", 2}, {"k", 1}, {"v", 1}}, 3, DType::kFp32);
    const TensorView b = w.stacked({{"qb", 2}, {"kb", 1}}, -1, DType::kFp32);
    EXPECT_EQ(t.describe(), "fp32 [4, 3]");
    EXPECT_EQ(b.describe(), "fp32 [3]");
    if (w.is_plan()) return;
    const float expected[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, -2};
    for (size_t i = 0; i < 12; ++i) EXPECT_EQ(t.ptr<float>()[i], expected[i]);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(b.ptr<float>()[i], expected[i]);
  });
}

TEST(WeightLoader, TransposesExperts) {
  constexpr int64_t kExperts = 3, kRows = 130, kColumns = 71;  // neither fills its tiles
  std::vector<uint16_t> stored;
  for (int64_t i = 0; i < kExperts * kRows * kColumns; ++i) {
    stored.push_back(static_cast<uint16_t>(0x3000 + i % 4099));
  }
  const auto builder = SafetensorsBuilder().add("w", "BF16", "[3,71,130]", stored);
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    load_built(builder, [&](WeightLoader& w) {
      const auto experts = w.transposed_experts("w", kExperts, kRows, kColumns, dtype);
      EXPECT_FALSE(experts.scales);
      if (w.is_plan()) return;
      for (int64_t e = 0; e < kExperts; ++e) {
        for (int64_t r = 0; r < kRows; ++r) {
          for (int64_t c = 0; c < kColumns; ++c) {
            const int64_t at = (e * kRows + r) * kColumns + c;
            const uint16_t expected = stored[static_cast<size_t>((e * kColumns + c) * kRows + r)];
            const float got = dtype == DType::kFp32 ? experts.values.ptr<float>()[at]
                                                    : to_float(experts.values.ptr<Bf16>()[at]);
            ASSERT_EQ(got, to_float(Bf16{expected})) << e << " " << r << " " << c;
          }
        }
      }
    });
  }
}

TEST(WeightLoader, AcceptsEmptyTensors) {
  const auto builder = SafetensorsBuilder().add("w", "BF16", "[0,7]", std::vector<uint16_t>{});
  load_built(builder, [](WeightLoader& w) {
    EXPECT_EQ(w.dense("w", {0, 7}, DType::kFp32).num_elements(), 0);
  });
}

TEST(WeightLoader, RefusesNumbersThatAreNone) {
  const auto error_with = [](uint16_t bits, size_t at) {
    std::vector<uint16_t> values(300000, 0x3f80);
    values[at] = bits;
    values[299999] = 0x7fc0;  // a later one: the first is named
    const auto builder = SafetensorsBuilder().add("model.w", "BF16", "[1000,300]", values);
    return user_error_of([&] {
      load_built(builder, [](WeightLoader& w) { w.dense("model.w", {1000, 300}, DType::kFp32); });
    });
  };
  expect_mentions(error_with(0x7fc0, 5), {"model.safetensors: model.w[0, 5] is nan"});
  expect_mentions(error_with(0x7f80, 299998), {"model.w[999, 298] is inf"});
  expect_mentions(error_with(0xff80, 600), {"model.w[2, 0] is -inf"});
  const auto f32 = SafetensorsBuilder().add("w", "F32", "[2]", std::vector<float>{1, 3.4e38f});
  expect_mentions(user_error_of([&] {
                    load_built(f32, [](WeightLoader& w) { w.dense("w", {2}, DType::kBf16); });
                  }),
                  {"w[1] is 3.4e+38, not a finite bf16"});
  std::vector<uint16_t> stored(2 * 3 * 4, 0);
  stored[17] = 0x7fff;
  const auto experts = SafetensorsBuilder().add("e", "BF16", "[2,3,4]", stored);
  expect_mentions(user_error_of([&] {
                    load_built(experts, [](WeightLoader& w) {
                      w.transposed_experts("e", 2, 4, 3, DType::kBf16);
                    });
                  }),
                  {"e[1, 1, 1] is nan"});
}

TEST(WeightLoader, RefusesMxfp4ScalesThatAreNone) {
  for (const DType dtype : {DType::kMxfp4, DType::kBf16, DType::kFp32}) {
    const auto error_with = [&](uint8_t scale) {
      const auto builder =
          SafetensorsBuilder()
              .add("e_blocks", "U8", "[2,3,1,16]", std::vector<uint8_t>(96, 0x77))
              .add("e_scales", "U8", "[2,3,1]", std::vector<uint8_t>{1, 2, 3, 4, scale, 255});
      return user_error_of([&] {
        load_built(builder, [&](WeightLoader& w) {
          w.mxfp4_experts("e_blocks", "e_scales", 2, 3, 32, dtype);
        });
      });
    };
    expect_mentions(error_with(255), {"model.safetensors: e_scales[1, 1, 0] is 255", "NaN"});
    expect_mentions(error_with(254), {"e_scales[1, 1, 0] is 254", "overflows"});
    expect_mentions(error_with(252), {"e_scales[1, 2, 0] is 255"});
  }
}

TEST(WeightLoader, FinishListsEverythingAtOnce) {
  TempFolder folder;
  SafetensorsBuilder builder;
  builder.add("shape", "BF16", "[2,3]", std::vector<uint16_t>(6));
  builder.add("type", "I32", "[2]", std::vector<int32_t>(2));
  for (int i = 0; i < 25; ++i) {
    builder.add(fmt::format("extra.{:02}", i), "U8", "[1]", std::vector<uint8_t>(1));
  }
  folder.write("model.safetensors", builder.text());
  const auto checkpoint = open_checkpoint(folder.path());
  WeightLoader plan = WeightLoader::plan(*checkpoint);
  plan.dense("shape", {3, 2}, DType::kFp32);
  plan.dense("type", {2}, DType::kBf16);
  plan.dense("gone.a", {2}, DType::kBf16);
  plan.stacked({{"gone.b", 1}, {"gone.c", 2}}, 4, DType::kBf16);
  const std::string message = user_error_of([&] { plan.finish(); });
  expect_mentions(
      message, {folder.path(), "3 missing: gone.a, gone.b, gone.c", "2 of the wrong shape or type",
                "shape is BF16 [2, 3], expected BF16, F16, F32 or GGUF blocks [3, 2]",
                "type is I32 [2], expected BF16, F16, F32 or GGUF blocks [2]",
                "25 unused: extra.00", "extra.19 and 5 more"});
  EXPECT_EQ(message.find("extra.20"), std::string::npos);
}

TEST(WeightLoader, LoadWithoutAPlanStopsAtTheFirstFault) {
  TempFolder folder;
  folder.write("model.safetensors",
               SafetensorsBuilder().add("w", "F32", "[2]", std::vector<float>(2)).text());
  const auto checkpoint = open_checkpoint(folder.path());
  const auto device = make_cpu_device(1);
  const auto stream = device->make_stream();
  Arena arena(*device, 1024, "weights");
  WeightLoader load = WeightLoader::load(*checkpoint, arena, *stream);
  EXPECT_EQ(arena.used_bytes(), 0);
  expect_mentions(user_error_of([&] { load.dense("x", {2}, DType::kFp32); }),
                  {folder.path(), "tensor x is missing"});
  expect_mentions(user_error_of([&] { load.dense("w", {3}, DType::kFp32); }),
                  {"w is F32 [2], expected BF16, F16, F32 or GGUF blocks [3]"});
}

TEST(WeightLoader, RefusesImpossibleShapes) {
  TempFolder folder;
  folder.write("model.safetensors", SafetensorsBuilder().text());
  const auto checkpoint = open_checkpoint(folder.path());
  WeightLoader plan = WeightLoader::plan(*checkpoint);
  const int64_t huge = int64_t{1} << 40;
  expect_mentions(user_error_of([&] {
                    plan.dense("w", {huge, huge}, DType::kFp32);
                  }),
                  {"tensor w", "[1099511627776, 1099511627776]"});
  expect_mentions(user_error_of([&] { plan.dense("w", {-1}, DType::kFp32); }),
                  {"tensor w", "[-1]"});
  expect_mentions(user_error_of([&] { plan.mxfp4_experts("b", "s", 1, 2, 48, DType::kBf16); }),
                  {folder.path(), "b: MXFP4", "32 values", "asks for 48"});
}

// The message lists every parameter that nothing sets, a scale tensor alone too.
TEST(Users, W02_MissingTensorsOfAQuantisedModelAreListed) {
  TempFolder folder;
  const std::string source = model_dir("gpt-oss-random");
  const auto checkpoint = open_checkpoint(source);
  const auto config = HfConfig::open(source);
  const std::vector<std::string> left_out = {"model.layers.0.mlp.experts.down_proj_scales",
                                             "model.layers.2.self_attn.k_proj.bias",
                                             "model.layers.3.mlp.experts.gate_up_proj_blocks"};
  SafetensorsBuilder builder;
  for (const TensorEntry& entry : checkpoint->tensors()) {
    if (std::find(left_out.begin(), left_out.end(), entry.name) != left_out.end()) continue;
    std::string shape = "[";
    for (const int64_t size : entry.shape) {
      shape += (shape.size() > 1 ? "," : "") + std::to_string(size);
    }
    builder.add(entry.name, to_string(entry.dtype), shape + "]",
                std::vector<uint8_t>(entry.bytes.begin(), entry.bytes.end()));
  }
  const std::string message = user_error_of([&] {
    load_built(builder, [&](WeightLoader& w) { GptOss(*config, w, DType::kBf16, DType::kMxfp4); });
  });
  expect_mentions(message, left_out);
  expect_mentions(message, {"3 missing: "});
  EXPECT_EQ(message.find("unused"), std::string::npos) << message;
}

}  // namespace
}  // namespace briar
