#include "cli/format_command.h"

#include <fmt/core.h>

#include <boost/json.hpp>
#include <cstdio>
#include <memory>

#include "base/json.h"
#include "base/result.h"
#include "cli/chat_model.h"
#include "cli/text_io.h"
#include "formats/format_records.h"
#include "formats/registry.h"
#include "tokenizer/tokenizer.h"

namespace briar {
namespace {

namespace bj = boost::json;

Result<bj::object> convert_line(const Format& format, std::string_view line,
                                const FormatOptions& options) {
  const auto parsed = json::parse(line, "the line");
  if (!parsed) return parsed.error();
  switch (options.mode) {
    case FormatOptions::Mode::kRender:
      return render_record(format, *parsed, options.strict_library);
    case FormatOptions::Mode::kParse: return parse_record(format, *parsed, options.strict_library);
    case FormatOptions::Mode::kSchema:
      return schema_record(format, *parsed, options.strict_library);
  }
  CHECK(false, "mode {} is none of the command's", static_cast<int>(options.mode));
  return bj::object();
}

void convert_lines(const FormatOptions& options) {
  const auto format =
      make_format(options.format, options.tokenizer.empty() ? Tokenizer::bundled_o200k_harmony()
                                                            : load_tokenizer(options.tokenizer));
  if (!format) throw UserError(format.error());
  check_different_files(options.in, options.out);
  TextInput input(options.in);
  TextOutput output(options.out);
  std::string line;
  for (int64_t number = 1; input.next_line(line); ++number) {
    const auto record = convert_line(**format, line, options);
    if (!record) {
      output.flush();
      throw_user_error("{}:{}: {}", input.name(), number, record.error().message);
    }
    output.write(bj::serialize(*record) + "\n");
  }
  output.flush();
}

}  // namespace

int run_format(const FormatOptions& options) {
  try {
    convert_lines(options);
    return 0;
  } catch (const UserError& e) {
    fmt::print(stderr, "briar format: {}\n", e.what());
    return 1;
  }
}

}  // namespace briar
