// Reading a client's JSON field by field: types and bounds are checked where a field is read, the
// first fault is kept, and what nobody read is known at the end.
#pragma once

#include <fmt/core.h>

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace briar {

// What came of reading one body.
struct ReadLog {
  std::optional<Error> error;        // the first fault
  std::vector<std::string> ignored;  // paths of fields that nobody read
};

// One object. A field that is absent or null is "not given": the functions return nothing for it.
// After a fault they return nothing either, so that readers need to look at log.error only once.
class Fields {
 public:
  // `path` is the object's own place in the body, such as "messages[2]"; empty for the body.
  Fields(const boost::json::object& object, std::string path, ReadLog& log);

  const boost::json::value* find(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  // Both bounds included. An integer is a JSON number without a fraction.
  std::optional<double> number(std::string_view key, double min, double max);
  std::optional<int64_t> integer(std::string_view key, int64_t min, int64_t max);
  std::optional<std::string> text(std::string_view key, size_t max_bytes = size_t{1} << 30);
  const boost::json::array* list(std::string_view key, size_t max_size);
  std::optional<Fields> object(std::string_view key);
  // Lists of one type. A lone string counts as a list of one.
  std::optional<std::vector<std::string>> texts(std::string_view key, size_t max_size,
                                                size_t max_bytes);
  std::optional<std::vector<int32_t>> ids(std::string_view key, size_t max_size, int64_t num_ids);

  // An element of a list in this object.
  std::optional<Fields> element(std::string_view key, size_t idx,
                                const boost::json::value& value) const;

  // Says that this key is known, though nothing is done with it.
  void skip(std::string_view key);
  // Notes a fault of a field unless there is one already.
  template <class... Args>
  void fail(std::string_view key, fmt::format_string<Args...> text, Args&&... args) const {
    note(key, fmt::format(text, std::forward<Args>(args)...));
  }
  bool ok() const { return !log_->error; }
  std::string path_of(std::string_view key) const;
  const boost::json::object& json() const { return *object_; }
  // Adds the fields that nobody asked for to the log.
  void note_unread();

 private:
  void note(std::string_view key, std::string message) const;
  void expect(std::string_view key, const boost::json::value& value, std::string_view what) const;

  const boost::json::object* object_;
  std::string path_;
  ReadLog* log_;
  std::vector<std::string_view> read_;
};

// "a string", "a number", ...: for messages, which never quote the client's values.
std::string_view json_kind_word(const boost::json::value& value);

// Parses a body that must be one JSON object, within the depth. Refuses text that is not UTF-8, a
// byte order mark, trailing commas, comments and lone surrogates.
Result<boost::json::value> parse_body(std::string_view body, int max_depth);

// The names of ignored fields as a header's value: printable ASCII, bounded.
std::string ignored_fields_header(const std::vector<std::string>& ignored);

}  // namespace briar
