// Files, pipes and the standard streams as input and output of commands.
#pragma once

#include <cstdio>
#include <fstream>
#include <istream>
#include <string>
#include <string_view>

namespace briar {

// A file, a pipe or, for "-" or nothing, standard input. Failures are thrown as UserError.
class TextInput {
 public:
  explicit TextInput(const std::string& path);

  const std::string& name() const { return name_; }
  // The next line without its newline; false at the end.
  bool next_line(std::string& line);
  // Everything up to the end.
  std::string rest();

 private:
  std::istream& stream();

  std::string name_;
  std::ifstream file_;
};

// Writing to the file that is being read would destroy it: a UserError.
void check_different_files(const std::string& in, const std::string& out);

// A file or, for "-" or nothing, standard output. Failures are thrown as UserError.
class TextOutput {
 public:
  explicit TextOutput(const std::string& path);
  ~TextOutput();
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;

  void write(std::string_view text);
  void flush();

 private:
  std::string name_;
  std::FILE* file_;
};

}  // namespace briar
