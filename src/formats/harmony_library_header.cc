#include <algorithm>
#include <utility>

#include "formats/harmony_library_parser.h"
#include "formats/harmony_text.h"
#include "formats/json_text.h"

namespace briar {
namespace {

std::string join_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

// Takes the first channel marker and its value out of the text.
Result<std::optional<std::string>> take_channel(std::string& text) {
  const size_t marker = text.find(kHarmonyChannelText);
  if (marker == text.npos) return std::optional<std::string>();
  const size_t begin = marker + kHarmonyChannelText.size();
  const size_t end = std::min(find_white_space(text, begin), text.find('<', begin));
  std::string value = text.substr(begin, end == text.npos ? end : end - begin);
  if (value.empty()) {
    return make_error("channel marker present but no channel value found in header");
  }
  text.erase(marker, kHarmonyChannelText.size() + value.size());
  return std::optional(std::move(value));
}

void put_space_before_constrain(std::string& text) {
  for (size_t at = text.find(kHarmonyConstrainText); at != text.npos;
       at = text.find(kHarmonyConstrainText, at + kHarmonyConstrainText.size() + 1)) {
    text.insert(at, " ");
  }
}

Status read_role(std::vector<std::string>& words, std::optional<Role> role, HarmonyHeader& header) {
  if (role) {
    header.role = *role;
  } else if (words.empty()) {
    return make_error("message header did not contain a role");
  } else {
    const std::string first = words.front();
    const std::optional<Role> known = role_from_word(first);
    if (!known) {
      if (words.size() == 1 && !first.starts_with("to=")) {
        return make_error("Unknown role: {}", first);
      }
      words.erase(words.begin());
    }
    header.role = known.value_or(Role::kTool);
    if (header.role == Role::kTool) header.name = first;
  }
  if (!words.empty() && words.front() == role_word(header.role)) words.erase(words.begin());
  return Ok{};
}

std::string without_to(const std::string& word) {
  return word.starts_with("to=") ? word.substr(3) : word;
}

void read_recipient_and_type(std::vector<std::string>& words, HarmonyHeader& header) {
  if (words.empty()) return;
  std::string last = std::move(words.back());
  words.pop_back();
  if (last.starts_with("to=") || words.empty()) {
    header.recipient = without_to(last);
    return;
  }
  header.content_type = std::move(last);
  header.recipient = without_to(words.back());
  words.pop_back();
}

}  // namespace

Result<HarmonyHeader> parse_library_header(std::string_view header_text, std::optional<Role> role,
                                           std::string* rest) {
  HarmonyHeader header;
  std::string text(header_text);
  auto channel = take_channel(text);
  if (!channel) return channel.error();
  header.channel = std::move(*channel);
  text = std::string(trim_white_space(text));
  put_space_before_constrain(text);
  std::vector<std::string> words = split_ascii_words(text);
  if (auto status = read_role(words, role, header); !status) return status.error();
  if (rest != nullptr) {
    *rest = join_words(words);
    return header;
  }
  read_recipient_and_type(words, header);
  if (!words.empty()) {
    return make_error("unexpected tokens remaining in message header: Some({})",
                      json_quote(join_words(words)));
  }
  return header;
}

}  // namespace briar
