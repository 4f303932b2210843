// make_seeds DIR: small valid inputs of each fuzz target, in DIR/<target>/.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "weights/gguf_sample.h"
#include "weights/sample_files.h"

namespace {

using briar::GgufBuilder;
using briar::GgufType;

std::string directory;

void write(const std::string& target, const std::string& name, const std::string& bytes) {
  const std::filesystem::path folder = std::filesystem::path(directory) / target;
  std::filesystem::create_directories(folder);
  std::ofstream file(folder / name, std::ios::binary);
  file << bytes;
}

GgufBuilder llama() {
  GgufBuilder b;
  b.key("general.architecture", "llama")
      .key("llama.embedding_length", 32u)
      .key("llama.feed_forward_length", 64u)
      .key("llama.block_count", 1u)
      .key("llama.attention.head_count", 2u)
      .key("llama.attention.head_count_kv", 1u)
      .key("llama.context_length", 128u)
      .key("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .key("llama.rope.freq_base", 1e4f)
      .key("llama.rope.scaling.type", "yarn")
      .key("llama.rope.scaling.factor", 2.f)
      .key("llama.rope.scaling.original_context_length", 64u)
      .key("tokenizer.ggml.eos_token_id", 2u)
      .key("general.alignment", 32u)
      .key("tokenizer.ggml.add_bos_token", GgufType::kBool, std::string(1, '\1'))
      .key("tokenizer.ggml.tokens", GgufType::kArray, briar::gguf_strings({"a", "b", ""}))
      .key("tokenizer.ggml.scores", GgufType::kArray,
           briar::gguf_array(GgufType::kFloat32, 1, briar::gguf_bytes(1.f)))
      .key("nested", GgufType::kArray,
           briar::gguf_array(GgufType::kArray, 1, briar::gguf_strings({"x"})))
      .tensor("blk.0.attn_q.weight", {32, 4}, 2, std::string(4 * 18, '\1'))
      .tensor("blk.0.attn_k.weight", {32, 2}, 3, std::string(2 * 20, '\2'))
      .tensor("token_embd.weight", {32, 3}, 8, std::string(3 * 34, '\3'))
      .tensor("rope_freqs.weight", {1}, 0, briar::gguf_bytes(1.f));
  return b;
}

void make_gguf() {
  write("gguf", "llama", llama().text());
  write("gguf", "types",
        GgufBuilder()
            .tensor("a", {256}, 12, std::string(144, '\4'))
            .tensor("b", {256}, 14, std::string(210, '\5'))
            .tensor("c", {32}, 39, std::string(17, '\6'))
            .tensor("d", {2, 2}, 30, std::string(8, '\7'))
            .tensor("e", {3}, 1, std::string(6, '\1'))
            .text());
  write("gguf", "empty", GgufBuilder().text());
}

void make_safetensors() {
  write("safetensors", "small",
        briar::SafetensorsBuilder()
            .add("w", "BF16", "[2,3]", std::vector<uint16_t>(6, 1))
            .add("s", "F32", "[]", std::vector<float>{1.f})
            .add("e", "I64", "[0,7]", std::vector<int64_t>{})
            .text());
  write("safetensors", "metadata",
        briar::safetensors_text(R"({"__metadata__":{"format":"pt"}})", ""));
}

void make_text() {
  write("tokenizer", "text",
        "\1The fox's 1234 leaps,\n\n  h\xc3\xa9ll\xc3\xb6 \xf0\x9f\x98\x80 DON'T");
  write("tokenizer", "special", "\1<|start|>user<|message|>hi<|end|>");
  write("tokenizer", "ids", std::string("\0\1\0\0\0\2\0\0\0\x40\x0d\3\0", 13));
  write("harmony", "ids", std::string("\2\5\32\7\34\10\50\12\4\11", 10));
  write("harmony", "text", "\4the quick brown fox");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_seeds DIR\n";
    return 2;
  }
  directory = argv[1];
  make_gguf();
  make_safetensors();
  make_text();
  return 0;
}
