#include "cli/trace_file.h"

#include <lzma.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <random>

#include "base/file.h"
#include "base/json.h"

namespace briar {
namespace {

namespace bj = boost::json;

// A trace of a day is a few hundred megabytes; more is a mistake or an attack.
constexpr size_t kMaxTraceBytes = size_t{2} << 30;

std::string unpack_xz(std::span<const uint8_t> packed, const std::string& path) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, uint64_t{256} << 20, LZMA_CONCATENATED) != LZMA_OK) {
    throw_user_error("{}: cannot start the xz decoder", path);
  }
  stream.next_in = packed.data();
  stream.avail_in = packed.size();
  std::string text, piece(size_t{1} << 20, '\0');
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK && text.size() < kMaxTraceBytes) {
    stream.next_out = reinterpret_cast<uint8_t*>(piece.data());
    stream.avail_out = piece.size();
    status = lzma_code(&stream, LZMA_FINISH);
    text.append(piece, 0, piece.size() - stream.avail_out);
  }
  lzma_end(&stream);
  if (status != LZMA_STREAM_END)
    throw_user_error("{}: not a whole .xz file (code {})", path, static_cast<int>(status));
  return text;
}

int64_t length(const bj::object& object, const char* key, const std::string& place) {
  const bj::value* value = object.if_contains(key);
  const int64_t* number = value == nullptr ? nullptr : value->if_int64();
  if (number == nullptr || *number < 0 || *number > (int64_t{1} << 30)) {
    throw_user_error("{}: {} is missing or not a length", place, key);
  }
  return *number;
}

TraceRequest parse_request(std::string_view line, const std::string& place) {
  auto parsed = json::parse(line, place);
  if (!parsed) throw UserError(parsed.error());
  const bj::object* object = parsed->if_object();
  if (object == nullptr) throw_user_error("{}: expected an object", place);
  TraceRequest r;
  const bj::value* arrival = object->if_contains("arrival_ms");
  if (arrival == nullptr || !arrival->is_number())
    throw_user_error("{}: arrival_ms is missing or not a number", place);
  r.arrival_ms = arrival->to_number<double>();
  r.prompt_len = length(*object, "prompt_len", place);
  r.output_len = length(*object, "output_len", place);
  if (r.prompt_len == 0) throw_user_error("{}: prompt_len is 0", place);
  if (const bj::value* ids = object->if_contains("hash_ids")) {
    if (!ids->is_array()) throw_user_error("{}: hash_ids is not a list", place);
    for (const bj::value& id : ids->as_array()) {
      if (!id.is_int64()) throw_user_error("{}: hash_ids holds {}", place, bj::serialize(id));
      r.hash_ids.push_back(id.as_int64());
    }
  }
  return r;
}

}  // namespace

std::vector<TraceRequest> read_trace(const std::string& path, int64_t limit) {
  auto file = MappedFile::open(path);
  if (!file) throw UserError(file.error());
  std::string unpacked;
  std::string_view text = file->text();
  if (path.ends_with(".xz")) text = unpacked = unpack_xz(file->bytes(), path);
  std::vector<TraceRequest> trace;
  for (int64_t number = 1;
       !text.empty() && (limit == 0 || static_cast<int64_t>(trace.size()) < limit); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    trace.push_back(parse_request(line, fmt::format("{}:{}", path, number)));
  }
  std::stable_sort(trace.begin(), trace.end(), [](const TraceRequest& a, const TraceRequest& b) {
    return a.arrival_ms < b.arrival_ms;
  });
  return trace;
}

std::vector<TraceRequest> make_trace(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> prompt(std::log(500), 1.0), output(std::log(150), 0.8);
  std::exponential_distribution<double> gap(1.0);
  std::vector<TraceRequest> trace;
  double now = 0;
  for (int64_t i = 0; i < count; ++i) {
    now += gap(random);
    TraceRequest r;
    r.arrival_ms = now;
    r.prompt_len = std::clamp<int64_t>(std::llround(prompt(random)), 1, 32768);
    r.output_len = std::clamp<int64_t>(std::llround(output(random)), 1, 8192);
    trace.push_back(r);
  }
  return trace;
}

}  // namespace briar
