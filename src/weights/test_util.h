// What the tests of weights/ share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "weights/sample_files.h"

namespace briar {

// The message of the UserError that `body` throws.
template <class Body>
std::string user_error_of(const Body& body) {
  try {
    body();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

// An error message is one line and mentions all of `parts`.
inline void expect_mentions(const std::string& message, const std::vector<std::string>& parts) {
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" not in: " << message;
  }
}

}  // namespace briar
