// JSON values as compact text, numbers spelled as serde_json spells them (1.0, 1e16, 1e-7), which
// is what models saw in training. Boost.JSON's own serialiser writes 1E0.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace briar {

std::string compact_json(const boost::json::value& value);

// With quotes and escapes.
std::string json_quote(std::string_view text);

// The shortest text that reads back as the same number; always with a fraction or an exponent.
std::string json_double(double value);

// What Python's json.dumps(value, ensure_ascii=False, indent=indent) writes; `indent` < 0: None.
// Chat templates put JSON into prompts this way.
std::string python_json(const boost::json::value& value, int indent = -1);

}  // namespace briar
