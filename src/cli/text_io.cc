#include "cli/text_io.h"

#include <iostream>
#include <iterator>

#include "base/result.h"

namespace briar {
namespace {

bool is_standard(const std::string& path) { return path.empty() || path == "-"; }

}  // namespace

TextInput::TextInput(const std::string& path) : name_(is_standard(path) ? "standard input" : path) {
  if (is_standard(path)) return;
  file_.open(path, std::ios::binary);
  if (!file_) throw_user_error("{}: cannot open", path);
}

std::istream& TextInput::stream() {
  return file_.is_open() ? static_cast<std::istream&>(file_) : std::cin;
}

bool TextInput::next_line(std::string& line) {
  if (std::getline(stream(), line)) return true;
  if (stream().bad()) throw_user_error("{}: cannot read", name_);
  return false;
}

std::string TextInput::rest() {
  std::string text((std::istreambuf_iterator<char>(stream())), {});
  if (stream().bad()) throw_user_error("{}: cannot read", name_);
  return text;
}

TextOutput::TextOutput(const std::string& path)
    : name_(is_standard(path) ? "standard output" : path),
      file_(is_standard(path) ? stdout : std::fopen(path.c_str(), "wb")) {
  if (file_ == nullptr) throw_user_error("{}: cannot open for writing", path);
}

TextOutput::~TextOutput() {
  if (file_ != stdout) std::fclose(file_);
}

void TextOutput::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) {
    throw_user_error("{}: cannot write", name_);
  }
}

void TextOutput::flush() {
  if (std::fflush(file_) != 0) throw_user_error("{}: cannot write", name_);
}

}  // namespace briar
