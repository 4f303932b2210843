#include "grammar/harmony_grammar.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "grammar/constraint_mask.h"

namespace briar {
namespace {

constexpr std::string_view kCallHead = " to=functions.";

// The headers of one turn.
class HarmonyHeaders {
 public:
  HarmonyHeaders(const HarmonyTokens& tokens, const HarmonyTurn& turn) : tokens_(tokens) {
    for (int32_t* node : {&analysis_, &preamble_, &final_, &call_, &opening_, &last_opening_,
                          &next_, &last_next_}) {
      *node = graph_.add_node();
    }
    if (!turn.calls.empty()) add_call_tails(turn);
    add_headers(opening_, turn, true);
    add_headers(last_opening_, turn, false);
    add("<|start|>assistant", next_, opening_);
    add("<|start|>assistant", last_next_, last_opening_);
  }

  const HeaderGraph& graph() const { return graph_; }
  int32_t opening() const { return opening_; }
  // Before the header of a message after the first.
  int32_t next(bool is_last) const { return is_last ? last_next_ : next_; }
  bool is_analysis(int32_t node) const { return node == analysis_; }
  bool is_preamble(int32_t node) const { return node == preamble_; }
  bool is_final(int32_t node) const { return node == final_; }
  bool is_call(int32_t node) const { return node == call_; }

 private:
  void add_headers(int32_t from, const HarmonyTurn& turn, bool has_preludes) {
    if (has_preludes) add("<|channel|>analysis<|message|>", from, analysis_);
    if (has_preludes && turn.has_preamble) add("<|channel|>commentary<|message|>", from, preamble_);
    if (turn.has_final) add("<|channel|>final<|message|>", from, final_);
    if (turn.has_final && turn.is_json) {
      add("<|channel|>final <|constrain|>json<|message|>", from, final_);
    }
    if (turn.calls.empty()) return;
    add(kCallHead, from, names_before_channel_);
    add("<|channel|>commentary" + std::string(kCallHead), from, names_after_channel_);
  }

  // Names, and what may follow them; the same for each.
  void add_call_tails(const HarmonyTurn& turn) {
    names_before_channel_ = graph_.add_node();
    names_after_channel_ = graph_.add_node();
    const int32_t after_all = graph_.add_node();
    for (const char* type : {"", " json", " <|constrain|>json", "<|constrain|>json"}) {
      add(std::string(type) + "<|message|>", after_all, call_);
    }
    const int32_t before_channel = graph_.add_node();
    add("<|channel|>commentary", before_channel, after_all);
    for (size_t i = 0; i < turn.calls.size(); ++i) {
      const auto name = HeaderGraph::text(turn.calls[i].name);
      const auto label = static_cast<int32_t>(i);
      graph_.set_label(graph_.add_path(names_before_channel_, name), label, before_channel);
      graph_.set_label(graph_.add_path(names_after_channel_, name), label, after_all);
    }
  }

  // Markers in `text` are the special tokens.
  void add(std::string_view text, int32_t from, int32_t to) {
    const std::array<std::pair<std::string_view, int32_t>, 4> markers = {
        {{"<|start|>", tokens_.start},
         {"<|channel|>", tokens_.channel},
         {"<|constrain|>", tokens_.constrain},
         {"<|message|>", tokens_.message}}};
    std::vector<HeaderGraph::Symbol> symbols;
    while (!text.empty()) {
      const auto marker = std::find_if(markers.begin(), markers.end(), [&](const auto& candidate) {
        return text.starts_with(candidate.first);
      });
      const bool is_marker = marker != markers.end();
      symbols.push_back(is_marker ? HeaderGraph::special(marker->second)
                                  : HeaderGraph::Symbol{static_cast<uint8_t>(text[0])});
      text.remove_prefix(is_marker ? marker->first.size() : 1);
    }
    graph_.add_path(from, symbols, to);
  }

  const HarmonyTokens tokens_;
  HeaderGraph graph_;
  int32_t analysis_ = -1, preamble_ = -1, final_ = -1, call_ = -1;
  int32_t opening_ = -1, last_opening_ = -1, next_ = -1, last_next_ = -1;
  int32_t names_before_channel_ = -1, names_after_channel_ = -1;
};

class HarmonyConstraint final : public GrammarConstraint {
 public:
  HarmonyConstraint(std::shared_ptr<const HarmonyVocabulary> vocabulary, HarmonyTurn turn)
      : vocabulary_(std::move(vocabulary)),
        turn_(std::move(turn)),
        headers_(vocabulary_->tokens, turn_),
        mask_(vocabulary_->index->num_words()) {
    states_.push_back({.phase = Phase::kHeader, .node = headers_.opening()});
  }

  void fill_mask(std::span<uint32_t> mask) override {
    const State& state = states_.back();
    if (state.phase == Phase::kGrammar) {
      matcher_->fill_mask(mask_);
      return copy_mask(mask_, mask);
    }
    if (state.phase == Phase::kText) {
      const auto ordinary = vocabulary_->index->ordinary();
      std::copy(ordinary.begin(), ordinary.end(), mask_.begin());
      set_bit(mask_, state.end_id);
      return copy_mask(mask_, mask);
    }
    std::fill(mask_.begin(), mask_.end(), 0);
    if (state.phase == Phase::kHeader) {
      headers_.graph().fill_mask(state.node, *vocabulary_->index, mask_);
    } else {
      set_bit(mask_, vocabulary_->tokens.return_);
      set_bit(mask_, vocabulary_->tokens.call);
    }
    copy_mask(mask_, mask);
  }

  void accept(int32_t token_id) override {
    State state = states_.back();
    switch (state.phase) {
      case Phase::kHeader: accept_header(token_id, state); break;
      case Phase::kText: accept_text(token_id, state); break;
      case Phase::kGrammar: accept_grammar(token_id, state); break;
      case Phase::kFinished: break;
    }
    states_.push_back(state);
  }

  bool is_finished() const override { return states_.back().phase == Phase::kFinished; }

  void roll_back(int64_t num_tokens) override {
    CHECK_LT(num_tokens, static_cast<int64_t>(states_.size()), "more than was accepted");
    const int32_t old = states_.back().num_matched;
    states_.resize(states_.size() - static_cast<size_t>(num_tokens));
    const int32_t left = states_.back().num_matched;
    const Phase phase = states_.back().phase;
    if (phase == Phase::kHeader || phase == Phase::kText) {
      matcher_.reset();
    } else if (left < old) {
      matcher_->roll_back(old - left);
    }
  }

 private:
  enum class Phase : int8_t { kHeader, kText, kGrammar, kFinished };

  // After each token, for roll_back().
  struct State {
    Phase phase = Phase::kHeader;
    int8_t num_preludes = 0;
    int32_t node = -1;        // kHeader: in the graph
    int32_t label = -1;       // kHeader: the call's number
    int32_t end_id = -1;      // kText
    int32_t num_matched = 0;  // tokens that the matcher has accepted
  };

  void accept_header(int32_t token_id, State& state) {
    const Tokenizer& tokenizer = *vocabulary_->tokenizer;
    const auto symbols =
        tokenizer.is_special(token_id)
            ? std::vector<HeaderGraph::Symbol>{HeaderGraph::special(token_id)}
            : HeaderGraph::text(tokenizer.token_bytes(token_id).value_or(std::string_view()));
    const auto place = headers_.graph().step({.node = state.node, .label = state.label}, symbols);
    CHECK(place && !symbols.empty(), "token {} was not allowed in a header", token_id);
    state.node = place->node;
    state.label = place->label;
    open_body(state);
  }

  void open_body(State& state) {
    const HarmonyTokens& tokens = vocabulary_->tokens;
    if (headers_.is_analysis(state.node) || headers_.is_preamble(state.node)) {
      state.phase = Phase::kText;
      state.end_id = tokens.end;
    } else if (headers_.is_final(state.node) && !turn_.answer) {
      state.phase = Phase::kText;
      state.end_id = tokens.return_;
    } else if (headers_.is_final(state.node)) {
      state.phase = Phase::kGrammar;
      matcher_ = turn_.answer->make_matcher({&tokens.return_, 1});
    } else if (headers_.is_call(state.node)) {
      state.phase = Phase::kGrammar;
      const auto& call = turn_.calls[static_cast<size_t>(state.label)];
      matcher_ = call.arguments->make_matcher({&tokens.call, 1});
    }
  }

  void accept_text(int32_t token_id, State& state) const {
    if (token_id != state.end_id) {
      CHECK(token_id >= 0 && token_id < vocabulary_->index->vocab_size() &&
                has_bit(vocabulary_->index->ordinary(), token_id),
            "token {} was not allowed in a text", token_id);
      return;
    }
    if (token_id == vocabulary_->tokens.return_) {
      state.phase = Phase::kFinished;
      return;
    }
    ++state.num_preludes;
    const bool is_last = state.num_preludes >= HarmonyTurn::kMaxPreludes;
    state = {.phase = Phase::kHeader,
             .num_preludes = state.num_preludes,
             .node = headers_.next(is_last)};
  }

  void accept_grammar(int32_t token_id, State& state) {
    CHECK(matcher_->accept(token_id), "token {} was not allowed by a grammar", token_id);
    ++state.num_matched;
    if (vocabulary_->tokens.is_stop(token_id)) state.phase = Phase::kFinished;
  }

  const std::shared_ptr<const HarmonyVocabulary> vocabulary_;
  const HarmonyTurn turn_;
  const HarmonyHeaders headers_;
  std::vector<uint32_t> mask_;
  std::vector<State> states_;
  std::unique_ptr<TextMatcher> matcher_;  // of the last message, if a grammar binds its body
};

}  // namespace

std::unique_ptr<GrammarConstraint> make_harmony_constraint(
    std::shared_ptr<const HarmonyVocabulary> vocabulary, HarmonyTurn turn) {
  return std::make_unique<HarmonyConstraint>(std::move(vocabulary), std::move(turn));
}

}  // namespace briar
