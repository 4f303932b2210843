#include "grammar/header_graph.h"

#include "base/check.h"

namespace briar {

std::vector<HeaderGraph::Symbol> HeaderGraph::text(std::string_view bytes) {
  std::vector<Symbol> symbols;
  symbols.reserve(bytes.size());
  for (const char c : bytes) symbols.push_back(static_cast<uint8_t>(c));
  return symbols;
}

int32_t HeaderGraph::add_node() {
  nodes_.emplace_back();
  return static_cast<int32_t>(nodes_.size()) - 1;
}

int32_t HeaderGraph::add_path(int32_t from, std::span<const Symbol> symbols) {
  for (const Symbol symbol : symbols) {
    int32_t to = next(from, symbol);
    if (to < 0) {
      to = add_node();
      nodes_[static_cast<size_t>(from)].edges.emplace_back(symbol, to);
    }
    from = to;
  }
  return from;
}

void HeaderGraph::add_path(int32_t from, std::span<const Symbol> symbols, int32_t to) {
  const int32_t last = add_path(from, symbols.first(symbols.size() - 1));
  const int32_t old = next(last, symbols.back());
  CHECK(old < 0 || old == to, "two paths of the same symbols end in nodes {} and {}", old, to);
  if (old < 0) nodes_[static_cast<size_t>(last)].edges.emplace_back(symbols.back(), to);
}

void HeaderGraph::set_label(int32_t node, int32_t label, int32_t tail) {
  nodes_[static_cast<size_t>(node)].label = label;
  nodes_[static_cast<size_t>(node)].tail = tail;
}

int32_t HeaderGraph::next(int32_t node, Symbol symbol) const {
  for (; node >= 0; node = nodes_[static_cast<size_t>(node)].tail) {
    for (const auto& [edge, to] : nodes_[static_cast<size_t>(node)].edges) {
      if (edge == symbol) return to;
    }
  }
  return -1;
}

void HeaderGraph::fill_mask(int32_t node, const VocabularyIndex& vocabulary,
                            std::span<uint32_t> mask) const {
  for (int32_t at = node; at >= 0; at = nodes_[static_cast<size_t>(at)].tail) {
    for (const auto& [symbol, to] : nodes_[static_cast<size_t>(at)].edges) {
      if (symbol >= 256) set_bit(mask, symbol - 256);
    }
  }
  fill_mask_below(node, vocabulary.all(), vocabulary, mask);
}

void HeaderGraph::fill_mask_below(int32_t node, VocabularyIndex::Range range,
                                  const VocabularyIndex& vocabulary,
                                  std::span<uint32_t> mask) const {
  for (; node >= 0; node = nodes_[static_cast<size_t>(node)].tail) {
    for (const auto& [symbol, to] : nodes_[static_cast<size_t>(node)].edges) {
      if (symbol >= 256) continue;
      const auto longer = vocabulary.narrow(range, static_cast<uint8_t>(symbol));
      if (longer.is_empty()) continue;
      vocabulary.add_exact(longer, mask);
      fill_mask_below(to, longer, vocabulary, mask);
    }
  }
}

std::optional<HeaderGraph::Place> HeaderGraph::step(Place place,
                                                    std::span<const Symbol> symbols) const {
  for (const Symbol symbol : symbols) {
    place.node = next(place.node, symbol);
    if (place.node < 0) return std::nullopt;
    const Node& node = nodes_[static_cast<size_t>(place.node)];
    if (node.label >= 0) place.label = node.label;
  }
  return place;
}

}  // namespace briar
