#include "cli/chat_command.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "briar/output_queue.h"
#include "cli/answer_printer.h"
#include "cli/chat_model.h"
#include "cli/interrupt.h"

namespace briar {
namespace {

constexpr const char* kHelp =
    "/reset         forget the conversation\n"
    "/system TEXT   new instructions, and forget the conversation; without TEXT: none\n"
    "/quit          leave (as Ctrl-D does); Ctrl-C stops an answer\n"
    "A line that ends in \\ goes on in the next.\n";

// Waits until one of two descriptors can be read; which says `fd` can.
bool wait_for(int fd, int other_fd) {
  pollfd fds[2] = {{.fd = fd, .events = POLLIN, .revents = 0},
                   {.fd = other_fd, .events = POLLIN, .revents = 0}};
  while (poll(fds, 2, -1) < 0) {
    if (errno != EINTR) throw_user_error("cannot wait for input: errno {}", errno);
  }
  return fds[0].revents != 0;
}

// Lines of standard input, with Ctrl-C as a line of its own.
class LineReader {
 public:
  enum class Event { kLine, kInterrupt, kEnd };

  explicit LineReader(InterruptFlag& interrupt) : interrupt_(interrupt) {}

  Event next(std::string& line) {
    while (true) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos || (is_at_end_ && !buffer_.empty())) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end == std::string::npos ? end : end + 1);
        if (line.ends_with('\r')) line.pop_back();
        return Event::kLine;
      }
      if (is_at_end_) return Event::kEnd;
      if (!wait_for(STDIN_FILENO, interrupt_.fd())) {
        interrupt_.take();
        buffer_.clear();  // the terminal has dropped the line too
        return Event::kInterrupt;
      }
      read_more();
    }
  }

 private:
  void read_more() {
    char bytes[4096];
    const ssize_t size = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (size < 0 && errno != EINTR) throw_user_error("standard input: errno {}", errno);
    if (size > 0) buffer_.append(bytes, static_cast<size_t>(size));
    is_at_end_ = size == 0;
  }

  InterruptFlag& interrupt_;
  std::string buffer_;
  bool is_at_end_ = false;
};

// Tells a poll() that a queue has something.
class Doorbell {
 public:
  Doorbell() {
    if (pipe(fds_) != 0) throw_user_error("no pipe for the engine's answers: errno {}", errno);
  }
  ~Doorbell() {
    close(fds_[0]);
    close(fds_[1]);
  }
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  int fd() const { return fds_[0]; }
  void ring() const {
    const char byte = 0;
    CHECK(write(fds_[1], &byte, 1) == 1, "cannot ring: errno {}", errno);
  }
  void answer() const {
    char byte;
    CHECK(read(fds_[0], &byte, 1) == 1, "nobody has rung: errno {}", errno);
  }

 private:
  int fds_[2];
};

class Conversation {
 public:
  Conversation(const ChatOptions& options, ChatModel model, Engine& engine,
               InterruptFlag& interrupt)
      : options_(options), model_(std::move(model)), engine_(engine), interrupt_(interrupt) {
    if (!options.system.empty()) request_.instructions = options.system;
    if (options.reasoning_effort.empty()) return;
    const auto effort = parse_reasoning_effort(options.reasoning_effort);
    if (!effort) throw UserError(effort.error());
    request_.reasoning_effort = *effort;
    request_.wants_reasoning = options.reasoning_effort != "none";
  }

  void reset() { request_.messages.clear(); }

  void set_system(std::string text) {
    reset();
    request_.instructions = text.empty() ? std::nullopt : std::optional(std::move(text));
  }

  // What cannot be asked, such as a conversation that has become too long, is told and forgotten.
  void ask(std::string question) {
    request_.messages.push_back(text_message(Role::kUser, std::move(question)));
    const size_t num_before = request_.messages.size();
    const auto prompt = model_.format->render_prompt(request_);
    const auto error = prompt ? answer(*prompt) : std::optional(prompt.error().message);
    if (!error) return;
    request_.messages.resize(num_before - 1);
    print_note("briar chat: {}\n", *error);
  }

 private:
  // Streams one answer and appends it to the history; returns why there is none.
  std::optional<std::string> answer(const std::vector<int32_t>& prompt) {
    Doorbell doorbell;
    const auto queue =
        std::make_shared<OutputQueue>(options_.max_tokens + 1, [&doorbell] { doorbell.ring(); });
    Request request{.prompt = prompt,
                    .sampling = sampling_params(options_.sampling, model_.defaults),
                    .max_tokens = options_.max_tokens,
                    .stop_token_ids = model_.stop_ids};
    request.on_output = [queue](Output output) { return queue->push(std::move(output)); };
    const auto id = engine_.submit(std::move(request));
    if (!id) return id.error().message;
    const auto parser = model_.format->make_parser({});
    AnswerPrinter printer;
    Output last;
    while (last.finish_reason == FinishReason::kNone) {
      if (!wait_for(doorbell.fd(), interrupt_.fd())) {
        if (interrupt_.take()) engine_.cancel(*id);
        continue;
      }
      doorbell.answer();
      last = std::move(*queue->pop());
      std::vector<Delta> deltas;
      for (const OutputToken& token : last.tokens) parser->push(token.token_id, deltas);
      for (const Delta& delta : deltas) printer.print(delta);
    }
    std::vector<Delta> deltas;
    parser->finish(deltas);
    for (const Delta& delta : deltas) printer.print(delta);
    printer.finish();
    return conclude(last, *parser);
  }

  std::optional<std::string> conclude(const Output& last, const StreamParser& parser) {
    if (last.finish_reason == FinishReason::kError) return last.error;
    if (last.finish_reason == FinishReason::kCancelled) print_note("[stopped]\n");
    if (last.finish_reason == FinishReason::kLength) print_note("[cut off: length]\n");
    for (const ParsedMessage& parsed : parser.messages()) {
      request_.messages.push_back(parsed.message);
    }
    return std::nullopt;
  }

  const ChatOptions& options_;
  const ChatModel model_;
  Engine& engine_;
  InterruptFlag& interrupt_;
  PromptRequest request_;
};

// "/name rest"; nothing if the line is a question.
struct Command {
  std::string name, rest;
};

std::optional<Command> command_in(const std::string& line) {
  if (!line.starts_with('/')) return std::nullopt;
  size_t end = 1;
  while (end < line.size() && line[end] >= 'a' && line[end] <= 'z') ++end;
  if (end == 1 || (end < line.size() && line[end] != ' ')) return std::nullopt;
  const size_t rest = std::min(line.find_first_not_of(' ', end), line.size());
  return Command{.name = line.substr(1, end - 1), .rest = line.substr(rest)};
}

// false: leave.
bool run_command(const Command& command, Conversation& conversation) {
  if (command.name == "quit" || command.name == "exit") return false;
  if (command.name == "reset") {
    conversation.reset();
  } else if (command.name == "system") {
    conversation.set_system(command.rest);
  } else {
    print_note("{}{}", command.name == "help" ? "" : "there is no /" + command.name + "\n", kHelp);
  }
  return true;
}

class Prompter {
 public:
  explicit Prompter(bool echoes)
      : echoes_(echoes), is_terminal_(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) {}

  void ask() const { print(is_terminal_, "> "); }
  void ask_more() const { print(is_terminal_, ". "); }
  void echo(const std::string& line) const { print(echoes_, "> " + line + "\n\n"); }
  void space() const { print(is_terminal_ || echoes_, "\n"); }

 private:
  static void print(bool wanted, const std::string& text) {
    if (!wanted) return;
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  bool echoes_, is_terminal_;
};

void talk(LineReader& lines, Conversation& conversation, const Prompter& prompter) {
  std::string line, question;
  while (true) {
    question.empty() ? prompter.ask() : prompter.ask_more();
    switch (lines.next(line)) {
      case LineReader::Event::kEnd: return;
      case LineReader::Event::kInterrupt:
        question.clear();
        print_note("\n(/quit or Ctrl-D leaves)\n");
        continue;
      case LineReader::Event::kLine: break;
    }
    if (line.ends_with('\\')) {
      line.back() = '\n';
      question += line;
      continue;
    }
    question += line;
    if (question.find_first_not_of(" \t\n") == std::string::npos) {
      question.clear();
      continue;
    }
    prompter.echo(question);
    if (const auto command = command_in(question)) {
      if (!run_command(*command, conversation)) return;
    } else {
      conversation.ask(question);
      prompter.space();
    }
    question.clear();
  }
}

}  // namespace

int run_chat(const ChatOptions& options) {
  check_flags(options.model);
  ChatModel model = load_chat_model(options.model.engine.model, options.format);
  ModelFlags flags = options.model;
  flags.engine.num_token_ids = model.tokenizer->vocab_size();
  const auto engine = create_engine(flags);
  InterruptFlag interrupt;  // from here on; while the model loads, Ctrl-C ends the program
  Conversation conversation(options, std::move(model), *engine, interrupt);
  LineReader lines(interrupt);
  if (isatty(STDIN_FILENO)) print_note("/help says what there is beside talking.\n");
  talk(lines, conversation, Prompter(options.echo));
  return 0;
}

}  // namespace briar
