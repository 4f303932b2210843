#include "formats/harmony_header.h"

#include <algorithm>
#include <utility>

#include "formats/harmony_text.h"

namespace briar {
namespace {

constexpr std::string_view kTo = "to=";

bool is_ascii_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_self(std::string_view recipient) { return recipient == "assistant" || recipient.empty(); }

// Reads a header as runs of text, each led by a marker token or by nothing.
class HeaderReader {
 public:
  HeaderReader(const HarmonyHeaderInput& input, const Tokenizer& tokenizer,
               const HarmonyTokens& tokens, const HarmonyToolNames& tools)
      : input_(input), tokenizer_(tokenizer), tokens_(tokens), tools_(tools) {
    if (input.role) {
      reading_.header.role = *input.role;
      reading_.has_role = true;
    }
  }

  HarmonyHeaderReading run() {
    const std::span<const int32_t> ids = input_.ids;
    for (size_t begin = 0; begin < ids.size();) {
      const int32_t marker = tokenizer_.is_special(ids[begin]) ? ids[begin] : -1;
      const size_t text_begin = begin + (marker >= 0 ? 1 : 0);
      size_t end = text_begin;
      while (end < ids.size() && !tokenizer_.is_special(ids[end])) ++end;
      read_run(marker, tokenizer_.decode(ids.subspan(text_begin, end - text_begin)));
      begin = end;
    }
    resolve_words();
    return std::move(reading_);
  }

 private:
  void read_run(int32_t marker, const std::string& text) {
    std::string_view left = text;
    bool has_read = false;
    if (marker == tokens_.channel) {
      has_read = read_channel(left);
    } else if (marker == tokens_.constrain) {
      read_constrain(left);
      has_read = true;
    } else if (marker >= 0) {
      reading_.is_repaired = true;
    }
    while (true) {
      std::string_view ahead = left;
      const std::string_view word = next_word(ahead);
      if (word.empty() || !read_word(word, ahead)) break;
      left = ahead;
      has_read = true;
    }
    if (!input_.has_body) add_rest(left, has_read);
  }

  // Cuts the next word off `text`. A role or channel glued to a recipient is a word of its own.
  static std::string_view next_word(std::string_view& text) {
    const size_t begin = std::min(text.size(), skip_spaces(text));
    size_t end = begin;
    while (end < text.size() && !is_ascii_space(text[end])) ++end;
    std::string_view word = text.substr(begin, end - begin);
    const size_t to = word.find(kTo);
    if (to != word.npos && to > 0) {
      const std::string_view head = word.substr(0, to);
      if (role_from_word(head) || is_harmony_channel(head)) word = head;
    }
    text.remove_prefix(begin + word.size());
    return word;
  }

  static size_t skip_spaces(std::string_view text) {
    size_t at = 0;
    while (at < text.size() && is_ascii_space(text[at])) ++at;
    return at;
  }

  // Without a body a word that names no channel is the beginning of an answer.
  bool read_channel(std::string_view& text) {
    std::string_view ahead = text;
    ahead.remove_prefix(skip_spaces(ahead));
    const size_t space = find_white_space(ahead, 0);
    const size_t end = std::min({space, ahead.find(kTo), ahead.size()});
    const std::string_view value = ahead.substr(0, end);
    if (value.empty() || reading_.header.channel) reading_.is_repaired = true;
    if (value.empty() || (!input_.has_body && !is_harmony_channel(value))) return false;
    reading_.header.channel = std::string(value);
    text = ahead.substr(end);
    return true;
  }

  void read_constrain(std::string_view& text) {
    text.remove_prefix(skip_spaces(text));
    size_t end = 0;
    while (end < text.size() && !is_ascii_space(text[end]) &&
           (input_.has_body || is_ascii_alnum(text[end]) || text[end] == '_')) {
      ++end;
    }
    reading_.header.content_type =
        std::string(kHarmonyConstrainText) + std::string(text.substr(0, end));
    text.remove_prefix(end);
  }

  // Takes one word, and from `ahead` what belongs to it; false: a header has no place for it.
  bool read_word(std::string_view word, std::string_view& ahead) {
    const bool is_first = !std::exchange(has_word_, true);
    if (word.starts_with(kTo)) {
      std::string_view recipient = word.substr(kTo.size());
      if (recipient.empty()) recipient = next_word(ahead);
      set_recipient(recipient);
      return true;
    }
    if (is_first && read_author(word)) return true;
    if (!input_.has_body) {
      const bool is_type = reading_.header.recipient && (word == "json" || word == "code");
      if (is_type && !reading_.header.content_type) {
        reading_.header.content_type = std::string(word);
        return true;
      }
      return false;
    }
    words_.push_back(std::string(word));
    return true;
  }

  bool read_author(std::string_view word) {
    HarmonyHeader& header = reading_.header;
    if (input_.role) return word == role_word(*input_.role);
    const size_t colon = word.find(':');
    if (const auto role = role_from_word(word.substr(0, colon)); role) {
      header.role = *role;
      if (*role == Role::kTool) header.name = std::string(word);
      if (*role != Role::kTool && colon != word.npos) header.name = word.substr(colon + 1);
      reading_.has_role = true;
      return true;
    }
    if (!input_.has_body || is_harmony_channel(word)) return false;
    header.role = Role::kTool;
    header.name = std::string(word);
    reading_.has_role = true;
    return true;
  }

  // The first recipient counts, but one that is somebody else counts more than the assistant.
  void set_recipient(std::string_view recipient) {
    recipient = recipient.substr(0, recipient.find("<|"));
    auto& current = reading_.header.recipient;
    if (current) reading_.is_repaired = true;
    if (!current || is_self(*current)) current = std::string(recipient);
  }

  void add_rest(std::string_view text, bool has_read) {
    if (has_read) text.remove_prefix(skip_spaces(text));
    if (skip_spaces(text) == text.size() && reading_.rest.empty()) return;
    reading_.rest += text;
  }

  // Words without a marker: a known tool, a channel, or the content type.
  void resolve_words() {
    HarmonyHeader& header = reading_.header;
    std::erase_if(words_, [&](const std::string& word) {
      if (!header.recipient && (word.starts_with("functions.") || tools_.find(word))) {
        header.recipient = word;
        return true;
      }
      if (!header.channel && is_harmony_channel(word)) {
        header.channel = word;
        return true;
      }
      return false;
    });
    if (words_.empty()) return;
    const bool is_type =
        words_.size() == 1 && !header.content_type && is_ascii_alnum(words_[0].front());
    if (is_type) {
      header.content_type = words_[0];
    } else {
      reading_.is_repaired = true;
    }
  }

  const HarmonyHeaderInput& input_;
  const Tokenizer& tokenizer_;
  const HarmonyTokens& tokens_;
  const HarmonyToolNames& tools_;
  HarmonyHeaderReading reading_;
  bool has_word_ = false;
  std::vector<std::string> words_;
};

}  // namespace

std::optional<std::string> HarmonyToolNames::find(std::string_view recipient) const {
  const auto declared = [&](std::string_view name) {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  };
  constexpr std::string_view kNamespace = "functions.";
  std::string_view name = recipient;
  if (name.starts_with(kNamespace)) name.remove_prefix(kNamespace.size());
  for (std::string_view glued : {"", "json", "code"}) {
    if (!name.ends_with(glued)) continue;
    const std::string_view candidate = name.substr(0, name.size() - glued.size());
    if (declared(candidate)) return std::string(candidate);
  }
  return declared(recipient) ? std::optional<std::string>(recipient) : std::nullopt;
}

bool is_harmony_channel(std::string_view name) {
  return name == "analysis" || name == "commentary" || name == "final";
}

HarmonyHeaderReading read_harmony_header(const HarmonyHeaderInput& input,
                                         const Tokenizer& tokenizer, const HarmonyTokens& tokens,
                                         const HarmonyToolNames& tools) {
  return HeaderReader(input, tokenizer, tokens, tools).run();
}

}  // namespace briar
