// What the tests of commands share: files of the test's own, and what a run left behind.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace briar::command_test {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

// ctest runs cases as processes side by side.
inline std::string temp_file(const std::string& name) {
  return testing::TempDir() + "/briar_command_" + std::to_string(getpid()) + "_" + name;
}

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs `command`, which returns an exit code and writes its results to the file `out`.
template <class Command>
Outcome outcome_of(Command command, const std::string& out) {
  testing::internal::CaptureStderr();
  const int code = command();
  return {code, read_file(out), testing::internal::GetCapturedStderr()};
}

}  // namespace briar::command_test
