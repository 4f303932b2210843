// A look over a client's JSON schema before anything compiles or renders it.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "base/result.h"

namespace briar {

// The error names the place, such as "tools[0].function.parameters.properties.a.type". Checks that
// known keywords have the right kind of value: types that exist, patterns whose brackets close,
// enums that are not empty, numeric bounds. Unknown keywords are fine. `schema` may be of any kind;
// its depth is bounded by the body's.
Status check_json_schema(const boost::json::value& schema, const std::string& path);

}  // namespace briar
