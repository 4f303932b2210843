// Every bound of the OpenAI API in one table. All of them are checked before any work that grows
// with the value; docs/openai_api.md lists them for users.
#pragma once

#include <cstddef>
#include <cstdint>

namespace briar {

struct ApiLimits {
  int json_depth = 64;              // nested lists and objects of a body, ignored fields included
  size_t max_messages = 4096;       // of a chat; items of a Responses input
  size_t max_parts = 1024;          // of one message's content
  size_t max_tools = 256;           // functions of a request
  size_t max_schema_bytes = 65536;  // of one tool's parameters, one response schema, one grammar
  int64_t max_choices = 128;        // n, best_of, and prompts x choices of a completion
  size_t max_prompts = 128;         // of a completion
  size_t max_stop_strings = 4;      // as OpenAI has it
  size_t max_stop_bytes = 1024;     // of one stop string
  size_t max_stop_token_ids = 128;
  size_t max_bad_words = 64;
  size_t max_bad_word_bytes = 256;
  size_t max_logit_bias = 1024;
  size_t max_allowed_token_ids = 4096;
  size_t max_guided_choices = 1024;
  int64_t max_top_logprobs = 20;
  int64_t max_metadata = 16;  // pairs of Responses metadata
  size_t max_cache_salt_bytes = 256;
  size_t max_model_name_bytes = 256;
  double max_timeout_s = 24 * 3600;
  size_t max_stored_responses = 1000;           // the oldest goes first
  size_t max_stored_bytes = size_t{256} << 20;  // of all stored responses
  double stored_response_seconds = 3600;        // after that a response is forgotten
  int64_t max_background_responses = 64;        // in progress at once
  int64_t max_queued_tokens = 16384;            // of one choice, not yet read by its stream
};

}  // namespace briar
