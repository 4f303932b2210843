#include "base/json.h"

#include <boost/json.hpp>

#include "base/file.h"

namespace briar::json {

Result<bj::value> parse(std::string_view text, std::string_view source, ParseLimits limits) {
  if (text.size() > limits.max_bytes) {
    return make_error("{}: {} bytes of JSON exceed the limit of {}", source, text.size(),
                      limits.max_bytes);
  }
  bj::parse_options options;
  options.max_depth = static_cast<size_t>(limits.max_depth);
  bj::stream_parser parser({}, options);
  bj::error_code code;
  const size_t consumed = parser.write_some(text.data(), text.size(), code);
  if (code) return make_error("{}: bad JSON at byte {}: {}", source, consumed, code.message());
  parser.finish(code);
  if (code) return make_error("{}: the JSON ends too early, at byte {}", source, consumed);
  if (const size_t rest = text.find_first_not_of(" \t\r\n", consumed); rest != text.npos) {
    return make_error("{}: text after the end of the JSON, at byte {}", source, rest);
  }
  return parser.release();
}

Result<bj::value> parse_file(const std::string& path, ParseLimits limits) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  return parse(file->text(), path, limits);
}

}  // namespace briar::json
