// The legal headers of messages as a graph over bytes and special tokens. Any way of cutting a
// header's text into tokens is legal, not only the tokenizer's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/vocabulary_index.h"

namespace briar {

class HeaderGraph {
 public:
  // A byte, or a special token.
  using Symbol = int32_t;
  static Symbol special(int32_t id) { return 256 + id; }
  // Every byte of the text, as symbols.
  static std::vector<Symbol> text(std::string_view bytes);

  // Where a header has got to.
  struct Place {
    int32_t node = -1;
    int32_t label = -1;  // the last one that was passed
  };

  int32_t add_node();
  // Leads from one node to another by the symbols (at least one). Nodes that an earlier path of the
  // same beginning made are shared; two paths must not end differently.
  void add_path(int32_t from, std::span<const Symbol> symbols, int32_t to);
  // The same to a node of its own, which is returned (an earlier path's if there is one).
  int32_t add_path(int32_t from, std::span<const Symbol> symbols);
  // Whoever passes the node takes the label, and from there may also go on as from `tail`.
  void set_label(int32_t node, int32_t label, int32_t tail);

  void fill_mask(int32_t node, const VocabularyIndex& vocabulary, std::span<uint32_t> mask) const;
  // Takes one token; nullopt if the graph has no such way.
  std::optional<Place> step(Place place, std::span<const Symbol> symbols) const;

 private:
  struct Node {
    std::vector<std::pair<Symbol, int32_t>> edges;
    int32_t label = -1;
    int32_t tail = -1;
  };

  int32_t next(int32_t node, Symbol symbol) const;
  void fill_mask_below(int32_t node, VocabularyIndex::Range range,
                       const VocabularyIndex& vocabulary, std::span<uint32_t> mask) const;

  std::vector<Node> nodes_;
};

}  // namespace briar
