#include "server/api/answer_reader.h"

#include <utility>

namespace briar {

void PlainTextParser::push(int32_t id, std::vector<Delta>& out) {
  const auto bytes = tokenizer_->token_bytes(id);
  if (!bytes || (skips_special_tokens_ && tokenizer_->is_special(id))) return;
  emit(utf8_.push(*bytes), out);
}

void PlainTextParser::finish(std::vector<Delta>& out) { emit(utf8_.finish(), out); }

void PlainTextParser::emit(std::string text, std::vector<Delta>& out) const {
  if (!text.empty()) out.push_back({.tool_name = {}, .text = std::move(text)});
}

AnswerReader::AnswerReader(std::unique_ptr<StreamParser> parser, AnswerReaderOptions options)
    : parser_(std::move(parser)), options_(std::move(options)), stops_(options_.stop) {}

void AnswerReader::push(int32_t id, std::vector<Delta>& out) {
  ++num_tokens_;
  is_latest_answer_ = parser_->open_kind() == Delta::Kind::kContent;
  const bool was_reasoning = parser_->open_kind() == Delta::Kind::kReasoning;
  fresh_.clear();
  parser_->push(id, fresh_);
  if (was_reasoning && parser_->open_kind() == Delta::Kind::kReasoning) ++num_reasoning_tokens_;
  is_latest_answer_ = is_latest_answer_ && parser_->open_kind() == Delta::Kind::kContent;
  filter(out);
}

void AnswerReader::finish(std::vector<Delta>& out) {
  fresh_.clear();
  parser_->finish(fresh_);
  filter(out);
  release_held(out);
}

void AnswerReader::filter(std::vector<Delta>& out) {
  for (Delta& delta : fresh_) {
    if (stopped()) return;
    if (latest_ && latest_->message_idx != delta.message_idx) release_held(out);
    if (delta.kind != Delta::Kind::kContent || num_tokens_ < options_.min_tokens) {
      out.push_back(std::move(delta));
      continue;
    }
    std::string text = stops_.push(delta.text);
    if (stopped() && options_.includes_stop) text += stops_.matched();
    emit(delta, std::move(text), out);
    latest_ = std::move(delta);
  }
}

void AnswerReader::emit(const Delta& like, std::string text, std::vector<Delta>& out) {
  if (text.empty()) return;
  out.push_back(like);
  out.back().text = std::move(text);
}

void AnswerReader::release_held(std::vector<Delta>& out) {
  if (!latest_) return;
  emit(*latest_, stops_.finish(), out);
  latest_.reset();
}

}  // namespace briar
