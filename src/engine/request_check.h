// Whether a request can be served at all; what is wrong with it otherwise.
#pragma once

#include "briar/engine.h"

namespace briar {

// num_token_ids: ids that may be drawn, at most the model's vocab_size.
Status check_request(const Request& request, const ModelDescription& model, int64_t num_token_ids);

}  // namespace briar
