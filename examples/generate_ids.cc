// Continues a prompt of token ids: generate_ids MODEL_FOLDER ID...
#include <cstdio>
#include <cstdlib>

#include "briar/engine.h"
#include "briar/output_queue.h"

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL_FOLDER ID...\n", argv[0]);
    return 2;
  }
  briar::Request request;
  for (int i = 2; i < argc; ++i) request.prompt.push_back(std::atoi(argv[i]));
  request.sampling.temperature = 0;
  request.max_tokens = 32;
  const auto queue = std::make_shared<briar::OutputQueue>(/*max_tokens=*/64);
  request.on_output = [queue](briar::Output o) { return queue->push(std::move(o)); };

  const auto engine = briar::Engine::create({.model = argv[1]});
  if (const auto id = engine->submit(std::move(request)); !id) throw briar::UserError(id.error());
  while (const auto output = queue->pop()) {
    for (const briar::OutputToken& token : output->tokens) std::printf("%d ", token.token_id);
    std::fflush(stdout);
  }
  std::printf("\n");
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
