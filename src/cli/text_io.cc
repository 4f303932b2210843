#include "cli/text_io.h"

#include <filesystem>
#include <iostream>

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
  // read() reports a failure in the stream's state; iterators would let it out as an exception.
  std::string text, piece(size_t{1} << 16, '\0');
  while (stream().read(piece.data(), static_cast<std::streamsize>(piece.size())) ||
         stream().gcount() > 0) {
    text.append(piece, 0, static_cast<size_t>(stream().gcount()));
  }
  if (stream().bad()) throw_user_error("{}: cannot read", name_);
  return text;
}

void check_different_files(const std::string& in, const std::string& out) {
  std::error_code ignored;
  if (!is_standard(in) && !is_standard(out) && std::filesystem::equivalent(in, out, ignored)) {
    throw_user_error("{}: is both input and output", out);
  }
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
  if (std::fflush(file_) != 0 || std::ferror(file_) != 0)
    throw_user_error("{}: cannot write", name_);
}

}  // namespace briar
