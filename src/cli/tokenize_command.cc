#include "cli/tokenize_command.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cli/chat_model.h"
#include "cli/text_io.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

namespace bj = boost::json;

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path) {
  return path.empty() ? Tokenizer::bundled_o200k_harmony() : load_tokenizer(path);
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text, bool specials) {
  return specials ? tokenizer.encode_with_specials(text) : tokenizer.encode(text);
}

Result<std::vector<int32_t>> read_ids(const bj::value& value) {
  const bj::array* array = value.if_array();
  if (array == nullptr) return make_error("\"ids\" is not an array");
  std::vector<int32_t> ids;
  for (const bj::value& id : *array) {
    if (!id.is_int64() || id.get_int64() != static_cast<int32_t>(id.get_int64())) {
      return make_error("the id {} is not a 32-bit integer", bj::serialize(id));
    }
    ids.push_back(static_cast<int32_t>(id.get_int64()));
  }
  return ids;
}

Result<std::string> decode_line(const Tokenizer& tokenizer, const bj::value& value) {
  const auto ids = read_ids(value);
  if (!ids) return ids.error();
  const auto bytes = tokenizer.decode_bytes(*ids);
  if (!bytes) return bytes.error();
  std::string hex;
  for (const char c : *bytes)
    fmt::format_to(std::back_inserter(hex), "{:02x}", static_cast<uint8_t>(c));
  return fmt::format("{{\"text\":{},\"bytes_hex\":\"{}\"}}\n",
                     bj::serialize(bj::string(lossy_utf8(*bytes))), hex);
}

// The output line for one input line.
Result<std::string> convert_line(const Tokenizer& tokenizer, std::string_view line, bool specials) {
  const auto parsed = json::parse(line, "the line");
  if (!parsed) return parsed.error();
  const bj::object* object = parsed->if_object();
  const bj::value* text = object != nullptr ? object->if_contains("text") : nullptr;
  const bj::value* ids = object != nullptr ? object->if_contains("ids") : nullptr;
  if ((text == nullptr) == (ids == nullptr)) {
    return make_error("the line is not an object with either \"text\" or \"ids\"");
  }
  if (ids != nullptr) return decode_line(tokenizer, *ids);
  if (!text->is_string()) return make_error("\"text\" is not a string");
  return fmt::format("{{\"ids\":[{}]}}\n",
                     fmt::join(encode(tokenizer, text->get_string(), specials), ","));
}

void convert_lines(const TokenizeOptions& options) {
  const auto tokenizer = open_tokenizer(options.tokenizer);
  check_different_files(options.jsonl, options.out);
  TextInput input(options.jsonl);
  TextOutput output(options.out);
  std::string line;
  for (int64_t number = 1; input.next_line(line); ++number) {
    const auto converted = convert_line(*tokenizer, line, options.specials);
    if (!converted) {
      output.flush();
      throw_user_error("{}:{}: {}", input.name(), number, converted.error().message);
    }
    output.write(*converted);
  }
  output.flush();
}

// Encodes the file again and again for about a second, at least three times, and reports the
// median.
void measure_encode(const TokenizeOptions& options) {
  const auto tokenizer = open_tokenizer(options.tokenizer);
  TextInput input(options.bench_file);
  TextOutput output(options.out);
  const std::string text = input.rest();
  if (text.empty()) throw_user_error("{}: nothing to encode", input.name());
  std::vector<double> seconds;
  double total = 0;
  size_t num_tokens = 0;
  while (seconds.size() < 3 || (total < 1.0 && seconds.size() < 1000)) {
    const auto start = std::chrono::steady_clock::now();
    num_tokens = encode(*tokenizer, text, options.specials).size();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    total += seconds.back();
  }
  const auto median = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), median, seconds.end());
  output.write(fmt::format("{} bytes, {} tokens, median of {} passes\n", text.size(), num_tokens,
                           seconds.size()));
  output.write(
      fmt::format("encode {:.2f} MB/s\n", static_cast<double>(text.size()) / 1e6 / *median));
  output.flush();
}

}  // namespace

int run_tokenize(const TokenizeOptions& options) {
  if (options.jsonl.empty() == options.bench_file.empty()) {
    fmt::print(stderr, "briar tokenize: give either --jsonl or --bench\n");
    return 2;
  }
  try {
    options.jsonl.empty() ? measure_encode(options) : convert_lines(options);
    return 0;
  } catch (const UserError& e) {
    fmt::print(stderr, "briar tokenize: {}\n", e.what());
    return 1;
  }
}

}  // namespace briar
