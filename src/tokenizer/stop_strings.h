// Stop strings over streamed text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace briar {

// Passes text through until one of the strings appears, wherever the pieces were cut. Holds back
// only what could be the beginning of a stop string; the string itself is not passed on. Of several
// that match, the one that begins first wins.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops);

  // Appends text; returns what is certain to stand before any stop string.
  std::string push(std::string_view text);
  // The end of the stream: what was held back. Empty after a stop.
  std::string finish();
  bool stopped() const { return stopped_; }
  // The string that stopped it; empty before.
  const std::string& matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;  // none is empty
  std::string held_;
  bool stopped_ = false;
  std::string matched_;
};

}  // namespace briar
