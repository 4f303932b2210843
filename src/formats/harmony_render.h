// Harmony's renderer: messages to token ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/format.h"
#include "formats/harmony_tokens.h"
#include "tokenizer/tokenizer.h"

namespace briar {

struct HarmonyRenderContext {
  const Tokenizer& tokenizer;
  const HarmonyTokens& tokens;
};

// <|start|> header <|message|> body <|end|> for each message. Text is always encoded as ordinary
// text, so nothing that a user types becomes structure.
Result<std::vector<int32_t>> render_harmony(const HarmonyRenderContext& context,
                                            std::span<const Message> messages,
                                            const RenderOptions& options);

// The bodies of system and developer messages, as text.
std::string harmony_system_text(const SystemContent& content, bool has_function_tools,
                                bool strict_library);
std::string harmony_developer_text(const DeveloperContent& content, bool strict_library);

}  // namespace briar
