#include "batch/step_packet.h"

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
};
static_assert(sizeof(Header) % alignof(StepSequence) == 0);

template <class T>
void append(std::vector<uint8_t>& bytes, const T* data, size_t count) {
  const auto* from = reinterpret_cast<const uint8_t*>(data);
  bytes.insert(bytes.end(), from, from + count * sizeof(T));
}

}  // namespace

void StepPacketBuilder::add(StepSequence sequence, std::span<const int32_t> given_tokens,
                            int32_t next_token,
                            const std::array<std::span<const int32_t>, kNumKvKinds>& page_ids,
                            const std::array<int32_t, kNumKvKinds>& first_page) {
  sequence.num_given = static_cast<int32_t>(given_tokens.size());
  CHECK(sequence.num_given == sequence.num_tokens || sequence.num_given == sequence.num_tokens - 1,
        "row {}: {} tokens given of {}", sequence.row, sequence.num_given, sequence.num_tokens);
  tokens_.insert(tokens_.end(), given_tokens.begin(), given_tokens.end());
  tokens_.push_back(next_token);
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    sequence.num_pages[kind] = static_cast<int32_t>(page_ids[kind].size());
    sequence.first_page[kind] = first_page[kind];
    page_ids_.insert(page_ids_.end(), page_ids[kind].begin(), page_ids[kind].end());
  }
  sequences_.push_back(sequence);
}

std::vector<uint8_t> StepPacketBuilder::finish() {
  const Header header{kMagic,         kStepPacketVersion, step_id_, sequences_.size(),
                      tokens_.size(), page_ids_.size()};
  std::vector<uint8_t> bytes;
  bytes.reserve(sizeof(header) + sequences_.size() * sizeof(StepSequence) +
                (tokens_.size() + page_ids_.size()) * sizeof(int32_t));
  append(bytes, &header, 1);
  append(bytes, sequences_.data(), sequences_.size());
  append(bytes, tokens_.data(), tokens_.size());
  append(bytes, page_ids_.data(), page_ids_.size());
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
               (header.num_token_words + header.num_page_words) * sizeof(int32_t),
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
  for (const StepSequence& s : sequences_) num_tokens_ += s.num_tokens;
}

std::vector<StepPacketView::Parts> StepPacketView::parts() const {
  std::vector<Parts> out;
  out.reserve(sequences_.size());
  size_t token = 0, page = 0;
  for (const StepSequence& s : sequences_) {
    Parts parts;
    parts.given_tokens = tokens_.subspan(token, static_cast<size_t>(s.num_given));
    token += static_cast<size_t>(s.num_given);
    parts.next_token = tokens_[token++];
    for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
      parts.page_ids[kind] = page_ids_.subspan(page, static_cast<size_t>(s.num_pages[kind]));
      page += static_cast<size_t>(s.num_pages[kind]);
    }
    out.push_back(parts);
  }
  CHECK(token == tokens_.size() && page == page_ids_.size(),
        "step packet {}: {} of {} tokens, {} of {} pages", step_id_, token, tokens_.size(), page,
        page_ids_.size());
  return out;
}

}  // namespace briar
