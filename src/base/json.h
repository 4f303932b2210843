// JSON by Boost.JSON, with the limits that input from outside needs. Include <boost/json.hpp> only
// in .cc files; headers get by with the forward declarations below.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace briar::json {

namespace bj = boost::json;

struct ParseLimits {
  size_t max_bytes = size_t{256} << 20;
  int max_depth = 64;
};

// Parses one JSON text. `source` names it in the error, which holds the byte offset of the fault.
// Numbers outside int64 / uint64 become doubles; a duplicate key keeps its last value.
Result<bj::value> parse(std::string_view text, std::string_view source, ParseLimits limits = {});

// Reads and parses a whole file.
Result<bj::value> parse_file(const std::string& path, ParseLimits limits = {});

}  // namespace briar::json
