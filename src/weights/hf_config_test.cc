#include "weights/hf_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weights/rope_config.h"
#include "weights/test_util.h"

namespace briar {
namespace {

HfConfig config_of(std::string_view text) {
  auto config = HfConfig::parse(text, "dir/config.json");
  if (!config) throw UserError(config.error());
  return *std::move(config);
}

std::string model_dir(const std::string& name) {
  return std::string(BRIAR_ASSETS_DIR) + "/models/" + name;
}

TEST(HfConfig, ReadsABundledConfig) {
  const auto opened = HfConfig::open(model_dir("gpt-oss-random"));
  ASSERT_TRUE(opened) << opened.error().message;
  const HfConfig& c = *opened;
  EXPECT_EQ(c.file(), model_dir("gpt-oss-random") + "/config.json");
  EXPECT_EQ(c.integer("hidden_size", {1, 1 << 20}), 288);
  EXPECT_EQ(c.integer({"num_experts", "num_local_experts"}, {1, 1024}), 12);
  EXPECT_EQ(c.integer({"num_experts_per_tok", "experts_per_token"}, {1, 12}), 4);
  EXPECT_EQ(c.real("rms_norm_eps", {0, 1}), 1e-5);
  EXPECT_EQ(c.real("rope_theta", {1, 1e9}), 150000);
  EXPECT_EQ(c.strings("architectures"), std::vector<std::string>{"GptOssForCausalLM"});
  EXPECT_EQ(c.strings("layer_types").size(), 4u);
  EXPECT_TRUE(c.boolean("attention_bias"));
  EXPECT_FALSE(c.boolean_or("tie_word_embeddings", true));
  EXPECT_EQ(c.section("quantization_config")->string("quant_method"), "mxfp4");
  EXPECT_FALSE(c.section("vision_config"));
}

TEST(HfConfig, AbsentAndNullTakeTheDefault) {
  const HfConfig c = config_of(R"({"a":null,"b":3})");
  EXPECT_EQ(c.integer_or("a", 7, {0, 9}), 7);
  EXPECT_EQ(c.integer_or("b", 7, {0, 9}), 3);
  EXPECT_EQ(c.find_integer("a", {0, 9}), std::nullopt);
  EXPECT_EQ(c.real_or("b", 7, {0, 9}), 3);
  EXPECT_EQ(c.find_real("x", {0, 9}), std::nullopt);
  EXPECT_EQ(c.string_or("a", "s"), "s");
  EXPECT_EQ(c.find_string("a"), std::nullopt);
  EXPECT_TRUE(c.boolean_or("a", true));
  EXPECT_TRUE(c.integers("a", {0, 9}).empty());
  EXPECT_EQ(c.integers("b", {0, 9}), std::vector<int64_t>{3});
  EXPECT_FALSE(c.has({"a", "x"}));
  EXPECT_EQ(c.keys(), (std::vector<std::string>{"a", "b"}));
}

TEST(HfConfig, ErrorsNameFileKeyAndValue) {
  const HfConfig c = config_of(R"({"s":"288","f":2.5,"n":-3,"u":18446744073709551615,"e":1e30,
      "b":1,"l":["x",4],"i":[1,"y"],"o":{"k":[1,2]}, "x": 4, "y": 5})");
  const auto expect_error = [](const auto& body, std::vector<std::string> parts) {
    parts.push_back("dir/config.json: ");
    expect_mentions(user_error_of(body), parts);
  };
  const IntRange range{1, 1000};
  expect_error([&] { c.integer("s", range); }, {"s is \"288\"", "an integer from 1 to 1000"});
  expect_error([&] { c.integer("f", range); }, {"f is 2.5,"});
  expect_error([&] { c.integer("n", range); }, {"n is -3", "from 1 to 1000"});
  expect_error([&] { c.integer("u", {}); }, {"u is 18446744073709551615"});
  expect_error([&] { c.integer("e", {}); }, {"e is 1e+30"});
  expect_error([&] { c.integer({"p", "q"}, range); }, {"p or q is missing"});
  expect_error([&] { c.integer({"x", "y"}, range); }, {"y is 5", "but x is 4"});
  expect_error([&] { c.real("s", {0, 1}); }, {"s is \"288\"", "a number from 0 to 1"});
  expect_error([&] { c.real("e", {0, 1}); }, {"e is 1e+30", "a number from 0 to 1"});
  expect_error([&] { c.boolean("b"); }, {"b is 1", "true or false"});
  expect_error([&] { c.string("b"); }, {"b is 1", "a string"});
  expect_error([&] { c.strings("s"); }, {"s is \"288\"", "a list of strings"});
  expect_error([&] { c.strings("l"); }, {"l[1] is 4", "a string"});
  expect_error([&] { c.integers("i", range); }, {"i[1] is \"y\""});
  expect_error([&] { c.section("b"); }, {"b is 1", "an object"});
  expect_error([&] { c.section("o")->integer("k", range); }, {"o.k is [1,2]"});
  expect_error([&] { c.section("o")->integer("z", range); }, {"o.z is missing"});
  expect_error([&] { c.fail("x", "expected a multiple of 3"); }, {"x is 4, expected a multiple"});
}

TEST(HfConfig, RefusesBrokenFiles) {
  expect_mentions(HfConfig::open("/nonexistent").error().message,
                  {"/nonexistent/config.json", "cannot open"});
  EXPECT_FALSE(HfConfig::parse("", "c"));
  EXPECT_FALSE(HfConfig::parse("{\"a\":", "c"));
  EXPECT_FALSE(HfConfig::parse(std::string(100000, '['), "c"));
  expect_mentions(HfConfig::parse("[1]", "c").error().message, {"c: [1], not a JSON object"});
}

constexpr const char* kScaling =
    R"("beta_fast":32.0,"beta_slow":1.0,"factor":32.0,"original_max_position_embeddings":4096,)"
    R"("rope_type":"yarn","truncate":false)";

TEST(Rope, ReadsAllSpellingsOfGptOss) {
  const std::string scaling = kScaling;
  const std::vector<std::string> texts = {
      R"({"rope_theta":150000,"rope_scaling":{)" + scaling + "}}",
      R"({"rope_parameters":{"rope_theta":150000.0,)" + scaling + "}}",
      R"({"rope_theta":150000,"rope_parameters":{)" + scaling + R"(},"rope_scaling":{)" + scaling +
          "}}",
      R"({"rope_parameters":{"full_attention":{"rope_theta":150000,)" + scaling +
          R"(},"sliding_attention":{"rope_theta":150000,)" + scaling + "}}}",
      R"({"initial_context_length":4096,"rope_theta":150000.0,"rope_scaling_factor":32.0,
          "rope_ntk_alpha":1.0,"rope_ntk_beta":32.0})"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    const RopeScaling rope = read_rope_of_kind(config_of(text), RopeKind::kYarn);
    EXPECT_EQ(rope.theta, 150000);
    EXPECT_EQ(rope.factor, 32);
    EXPECT_EQ(rope.original_max_position_embeddings, 4096);
    EXPECT_EQ(rope.beta_fast, 32);
    EXPECT_EQ(rope.beta_slow, 1);
    EXPECT_FALSE(rope.truncate);
    EXPECT_NEAR(rope.attention_scale(), 1.3465735902799727, 1e-15);  // 0.1 ln 32 + 1
  }
  for (const char* name : {"tiny-harmony", "tiny-harmony-draft", "gpt-oss-random"}) {
    const auto config = HfConfig::open(model_dir(name));
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(read_rope_of_kind(*config, RopeKind::kYarn), read_rope(config_of(texts[0]))) << name;
  }
}

TEST(Rope, ReadsTheOtherKinds) {
  RopeScaling rope = read_rope(config_of(R"({"rope_theta":10000.0,"rope_scaling":null})"));
  EXPECT_EQ(rope.kind, RopeKind::kDefault);
  EXPECT_EQ(rope.theta, 10000);
  EXPECT_EQ(rope.attention_scale(), 1);
  EXPECT_EQ(read_rope(config_of("{}"), 500000.0).theta, 500000);
  rope = read_rope(config_of(
      R"({"rope_theta":5e5,"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,
          "high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"}})"));
  EXPECT_EQ(rope.kind, RopeKind::kLlama3);
  EXPECT_EQ(rope.original_max_position_embeddings, 8192);
  EXPECT_EQ(rope.high_freq_factor, 4);
  rope = read_rope(config_of(R"({"rope_theta":1e4,"rope_scaling":{"type":"linear","factor":2},
                    "partial_rotary_factor":0.5})"));
  EXPECT_EQ(rope.kind, RopeKind::kLinear);
  EXPECT_EQ(rope.factor, 2);
  EXPECT_EQ(rope.partial_rotary_factor, 0.5);
  // DeepSeek: mscale and mscale_all_dim cancel out.
  rope = read_rope(config_of(
      R"({"rope_theta":10000,"rope_scaling":{"beta_fast":32,"beta_slow":1,"factor":40,"mscale":1.0,
          "mscale_all_dim":1.0,"original_max_position_embeddings":4096,"type":"yarn"}})"));
  EXPECT_TRUE(rope.truncate);
  EXPECT_EQ(rope.attention_scale(), 1);
  rope.mscale = 0.707;
  EXPECT_NEAR(rope.attention_scale(), (0.0707 * std::log(40.) + 1) / (0.1 * std::log(40.) + 1),
              1e-15);
  rope.attention_factor = 1.25;
  EXPECT_EQ(rope.attention_scale(), 1.25);
}

TEST(Rope, RefusesWhatItDoesNotKnow) {
  const auto expect_error = [](const std::string& text, std::vector<std::string> parts) {
    SCOPED_TRACE(text);
    parts.push_back("dir/config.json: ");
    expect_mentions(user_error_of([&] { read_rope(config_of(text)); }), parts);
  };
  const std::string theta = R"({"rope_theta":10000,)";
  expect_error("{}", {"rope_theta is missing"});
  expect_error(R"({"rope_theta":-1})",
               {"rope_theta is -1, expected a number above 0, at most 1e+18"});
  expect_error(theta + R"("rope_scaling":{"rope_type":"longrope"}})",
               {"rope_scaling.rope_type is \"longrope\"", "yarn"});
  expect_error(theta + R"("rope_scaling":{"rope_type":7}})", {"rope_scaling.rope_type is 7"});
  expect_error(theta + R"("rope_scaling":"yarn"})", {"rope_scaling is \"yarn\""});
  expect_error(theta + R"("rope_scaling":{"type":"yarn","rope_type":"linear"}})",
               {"type is \"yarn\"", "but rope_type is \"linear\""});
  expect_error(theta + R"("rope_scaling":{"type":"linear"}})", {"rope_scaling.factor is missing"});
  expect_error(theta + R"("rope_scaling":{"type":"linear","factor":0.5}})",
               {"rope_scaling.factor is 0.5,"});
  expect_error(theta + R"("rope_scaling":{"type":"yarn","factor":2}})",
               {"original_max_position_embeddings or initial_context_length is missing"});
  expect_error(theta + R"("rope_scaling":{"type":"yarn","factor":2,"beta_fast":1,
      "original_max_position_embeddings":4096}})",
               {"rope_scaling.beta_fast is 1"});
  expect_error(theta + R"("rope_scaling":{"type":"llama3","factor":2,"low_freq_factor":4,
      "high_freq_factor":4,"original_max_position_embeddings":8192}})",
               {"high_freq_factor is 4"});
  expect_error(theta + R"("rope_parameters":{"rope_theta":20000}})",
               {"rope_theta is 10000", "20000"});
  expect_error(theta + R"("rope_parameters":{},"rope_scaling":{"type":"linear","factor":2}})",
               {"rope_scaling is {", "rope_parameters says otherwise"});
  expect_error(R"({"rope_parameters":{"full_attention":{"rope_theta":1e6},
      "sliding_attention":{"rope_theta":1e4}}})",
               {"rope_parameters.sliding_attention", "full_attention has other"});
}

TEST(Users, A04_MissingRopeScalingIsAnError) {
  const auto error_of = [](std::string_view text) {
    return user_error_of([&] { read_rope_of_kind(config_of(text), RopeKind::kYarn); });
  };
  for (const char* text :
       {R"({"rope_theta":150000})", R"({"rope_theta":150000,"rope_scaling":null})",
        R"({"rope_parameters":{"rope_theta":150000,"rope_type":"default"}})"}) {
    expect_mentions(error_of(text), {"dir/config.json", "rope scaling is missing", "needs yarn"});
  }
  expect_mentions(
      error_of(R"({"rope_theta":150000,"rope_scaling":{"rope_type":"linear","factor":32}})"),
      {"rope scaling is linear", "needs yarn"});
}

GenerationConfig generation_of(const std::string& generation, const std::string& config) {
  TempFolder folder;
  if (!generation.empty()) folder.write("generation_config.json", generation);
  auto result = GenerationConfig::open(folder.path(), config_of(config));
  if (!result) throw UserError(result.error());
  return *std::move(result);
}

TEST(Generation, ReadsAllEosIds) {
  for (const char* name : {"tiny-harmony", "tiny-harmony-draft"}) {
    const auto config = HfConfig::open(model_dir(name));
    const auto generation = GenerationConfig::open(model_dir(name), *config);
    ASSERT_TRUE(generation) << generation.error().message;
    EXPECT_EQ(generation->eos_token_ids, (std::vector<int64_t>{200002, 199999, 200012}));
    EXPECT_EQ(generation->bos_token_id, 199998);
    EXPECT_EQ(generation->pad_token_id, 199999);
    EXPECT_TRUE(generation->do_sample);
    EXPECT_EQ(generation->temperature, std::nullopt);
  }
  EXPECT_EQ(generation_of(R"({"eos_token_id":5})", "{}").eos_token_ids, std::vector<int64_t>{5});
}

TEST(Generation, FallsBackToTheConfig) {
  const std::string config = R"({"eos_token_id":[3,4],"pad_token_id":-1,"vocab_size":10})";
  for (const char* text : {"", "{}", R"({"eos_token_id":null})"}) {
    const GenerationConfig generation = generation_of(text, config);
    EXPECT_EQ(generation.eos_token_ids, (std::vector<int64_t>{3, 4}));
    EXPECT_EQ(generation.pad_token_id, std::nullopt);
    EXPECT_FALSE(generation.do_sample);
  }
  EXPECT_TRUE(generation_of("", "{}").eos_token_ids.empty());
}

TEST(Generation, ReadsSamplingDefaults) {
  const GenerationConfig generation = generation_of(
      R"({"do_sample":true,"temperature":0.6,"top_p":0.95,"top_k":20,"min_p":0})", "{}");
  EXPECT_EQ(generation.temperature, 0.6);
  EXPECT_EQ(generation.top_p, 0.95);
  EXPECT_EQ(generation.top_k, 20);
  EXPECT_EQ(generation.min_p, 0);
}

TEST(Generation, RefusesWrongValues) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> cases = {
      {"", {"generation_config.json", "JSON"}},
      {"[]", {"not a JSON object"}},
      {R"({"eos_token_id":"1"})", {"eos_token_id is \"1\""}},
      {R"({"eos_token_id":[1,10]})", {"eos_token_id[1] is 10", "from 0 to 9"}},
      {R"({"eos_token_id":-1})", {"eos_token_id is -1"}},
      {R"({"bos_token_id":10})", {"bos_token_id is 10"}},
      {R"({"do_sample":1})", {"do_sample is 1"}},
      {R"({"temperature":-0.5})", {"temperature is -0.5,"}},
      {R"({"top_p":1.5})", {"top_p is 1.5,"}},
      {R"({"top_k":"all"})", {"top_k is \"all\""}},
  };
  for (const auto& [text, mentions] : cases) {
    SCOPED_TRACE(text);
    TempFolder folder;
    folder.write("generation_config.json", text);
    const auto result = GenerationConfig::open(folder.path(), config_of(R"({"vocab_size":10})"));
    ASSERT_FALSE(result);
    expect_mentions(result.error().message, mentions);
    expect_mentions(result.error().message, {folder.path() + "/generation_config.json: "});
  }
}

}  // namespace
}  // namespace briar
