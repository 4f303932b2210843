// Looks a JSON schema through before XGrammar sees it: what is malformed is an error that names its
// path, and what is too large never gets there.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace briar {

struct SchemaLimits {
  size_t max_bytes = size_t{256} << 10;
  int max_depth = 32;                    // schemas in schemas
  size_t max_schemas = 4000;             // in all
  size_t max_enum_values = 5000;         // in all
  int64_t max_count = int64_t{1} << 30;  // a bound such as maxLength
};

struct CheckedSchema {
  std::string text;  // the schema, what means nothing left out
  // Where its regular expressions are and what they are.
  std::vector<std::pair<std::string, std::string>> patterns;
};

// `path` is where the schema is, for errors: "tools[0].parameters". Keywords that no grammar
// enforces (docs/structured_output.md) must be well-formed too.
Result<CheckedSchema> check_schema(const boost::json::value& schema, const std::string& path,
                                   const SchemaLimits& limits = {});

}  // namespace briar
