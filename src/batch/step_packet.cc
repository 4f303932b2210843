#include "batch/step_packet.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace briar {
namespace {

constexpr uint32_t kMagic = 0x42524152;  // "BRAR"

struct Header {
  uint32_t magic;
  uint32_t version;
  uint64_t step_id;
  uint64_t num_sequences;
  uint64_t num_token_words;
  uint64_t num_page_words;
  uint64_t num_setup_words;
};
static_assert(sizeof(Header) % alignof(StepSequence) == 0);

template <class T>
void append(std::vector<uint8_t>& bytes, const T* data, size_t count) {
  const auto* from = reinterpret_cast<const uint8_t*>(data);
  bytes.insert(bytes.end(), from, from + count * sizeof(T));
}

}  // namespace

void StepPacketBuilder::begin(uint64_t step_id) {
  step_id_ = step_id;
  sequences_.clear();
  tokens_.clear();
  page_ids_.clear();
  setups_.clear();
}

void StepPacketBuilder::add(StepSequence sequence, std::span<const int32_t> given_tokens,
                            int32_t next_token,
                            const std::array<std::span<const int32_t>, kNumKvKinds>& new_page_ids,
                            const RowSetup& setup) {
  sequence.num_given = static_cast<int32_t>(given_tokens.size());
  CHECK(sequence.num_given == sequence.num_tokens || sequence.num_given == 0,
        "row {}: {} tokens given of {}", sequence.row, sequence.num_given, sequence.num_tokens);
  tokens_.insert(tokens_.end(), given_tokens.begin(), given_tokens.end());
  tokens_.push_back(next_token);
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    sequence.num_pages[kind] = static_cast<int32_t>(new_page_ids[kind].size());
    page_ids_.insert(page_ids_.end(), new_page_ids[kind].begin(), new_page_ids[kind].end());
  }
  add_setup(sequence, setup);
  sequences_.push_back(sequence);
}

void StepPacketBuilder::add_setup(StepSequence& sequence, const RowSetup& setup) {
  CHECK_EQ(setup.bias_ids.size(), setup.biases.size(), "row {}: biases", sequence.row);
  CHECK_EQ(setup.history_ids.size(), setup.history_counts.size(), "row {}: history", sequence.row);
  sequence.num_bias = static_cast<int32_t>(setup.bias_ids.size());
  sequence.num_allowed = static_cast<int32_t>(setup.allowed_ids.size());
  sequence.num_stop = static_cast<int32_t>(setup.stop_ids.size());
  sequence.num_history = static_cast<int32_t>(setup.history_ids.size());
  auto add = [&](std::span<const int32_t> words) {
    setups_.insert(setups_.end(), words.begin(), words.end());
  };
  add(setup.bias_ids);
  for (const float bias : setup.biases) setups_.push_back(std::bit_cast<int32_t>(bias));
  add(setup.allowed_ids);
  add(setup.stop_ids);
  add(setup.history_ids);
  add(setup.history_counts);
}

std::vector<uint8_t> StepPacketBuilder::finish(std::vector<uint8_t> bytes) {
  const Header header{kMagic,         kStepPacketVersion, step_id_,      sequences_.size(),
                      tokens_.size(), page_ids_.size(),   setups_.size()};
  bytes.clear();
  bytes.reserve(sizeof(header) + sequences_.size() * sizeof(StepSequence) +
                (tokens_.size() + page_ids_.size() + setups_.size()) * sizeof(int32_t));
  append(bytes, &header, 1);
  append(bytes, sequences_.data(), sequences_.size());
  append(bytes, tokens_.data(), tokens_.size());
  append(bytes, page_ids_.data(), page_ids_.size());
  append(bytes, setups_.data(), setups_.size());
  return bytes;
}

StepPacketView::StepPacketView(std::span<const uint8_t> bytes) {
  Header header;
  CHECK_GE(bytes.size(), sizeof(header), "step packet");
  std::memcpy(&header, bytes.data(), sizeof(header));
  CHECK_EQ(header.magic, kMagic, "step packet");
  CHECK_EQ(header.version, kStepPacketVersion, "step packet");
  CHECK_EQ(bytes.size(),
           sizeof(header) + header.num_sequences * sizeof(StepSequence) +
               (header.num_token_words + header.num_page_words + header.num_setup_words) *
                   sizeof(int32_t),
           "size of step packet {}", header.step_id);
  step_id_ = header.step_id;
  const uint8_t* at = bytes.data() + sizeof(header);
  // The vector behind the bytes is aligned for any of these, and every part's size keeps the
  // alignment.
  sequences_ = {reinterpret_cast<const StepSequence*>(at), header.num_sequences};
  at += header.num_sequences * sizeof(StepSequence);
  tokens_ = {reinterpret_cast<const int32_t*>(at), header.num_token_words};
  at += header.num_token_words * sizeof(int32_t);
  page_ids_ = {reinterpret_cast<const int32_t*>(at), header.num_page_words};
  at += header.num_page_words * sizeof(int32_t);
  setups_ = {reinterpret_cast<const int32_t*>(at), header.num_setup_words};
  for (const StepSequence& s : sequences_) num_tokens_ += s.num_tokens;
}

std::vector<StepPacketView::Parts> StepPacketView::parts() const {
  std::vector<Parts> out;
  out.reserve(sequences_.size());
  size_t token = 0, page = 0, setup = 0;
  auto take = [&](int32_t count) {
    const auto words = setups_.subspan(setup, static_cast<size_t>(count));
    setup += words.size();
    return words;
  };
  for (const StepSequence& s : sequences_) {
    Parts parts;
    parts.given_tokens = tokens_.subspan(token, static_cast<size_t>(s.num_given));
    token += static_cast<size_t>(s.num_given);
    parts.next_token = tokens_[token++];
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      parts.new_page_ids[kind] = page_ids_.subspan(page, static_cast<size_t>(s.num_pages[kind]));
      page += static_cast<size_t>(s.num_pages[kind]);
    }
    parts.setup.bias_ids = take(s.num_bias);
    const std::span<const int32_t> biases = take(s.num_bias);
    // The builder wrote the bits of floats.
    parts.setup.biases = {reinterpret_cast<const float*>(biases.data()), biases.size()};
    parts.setup.allowed_ids = take(s.num_allowed);
    parts.setup.stop_ids = take(s.num_stop);
    parts.setup.history_ids = take(s.num_history);
    parts.setup.history_counts = take(s.num_history);
    out.push_back(parts);
  }
  CHECK(token == tokens_.size() && page == page_ids_.size() && setup == setups_.size(),
        "step packet {}: {} of {} tokens, {} of {} pages, {} of {} words of set-up", step_id_,
        token, tokens_.size(), page, page_ids_.size(), setup, setups_.size());
  return out;
}

}  // namespace briar
