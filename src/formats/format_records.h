// JSON records of rendering and parsing, one a line in files: the cases that formats are tested
// with and what `briar format` reads and writes.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "formats/format.h"

namespace briar {

// {name, mode, conversation | message, auto_drop_analysis?, next_turn_role?}
// -> {name, tokens, text} or {name, error}.
Result<boost::json::object> render_record(const Format& format, const boost::json::value& line,
                                          bool strict_library);

// {name, tokens, role?, strict?, process_eos?, continue_on_error?} -> {name, messages, errors}.
Result<boost::json::object> parse_record(const Format& format, const boost::json::value& line,
                                         bool strict_library);

// {name, tool} -> {name, declaration, tokens} or {name, error}.
Result<boost::json::object> schema_record(const Format& format, const boost::json::value& line,
                                          bool strict_library);

}  // namespace briar
