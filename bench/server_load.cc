// The server alone under load: a scripted engine behind the real server, and one thread of clients
// over loopback, all in this process so that both ends read one clock.
//
//   server_load [--streams N] [--rate TOKENS_PER_S] [--seconds S] [--http-threads N]
//
// Streamed: N streams of chat completions, each with an equal share of the rate. Added latency is
// the time from the engine's callback to the client's read() that brought the event. Whole: as many
// requests as 64 connections can ask, one token each. "A core" is a second of processor time of all
// threads but the clients' (the scripted engine's included).
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/scripted_engine.h"
#include "formats/registry.h"
#include "server/server.h"

namespace briar {
namespace {

using Clock = std::chrono::steady_clock;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

struct LoadOptions {
  int num_streams = 1000;
  double rate = 50000;
  double seconds = 8;
  int num_http_threads = 2;
};

// Tells when each token of each stream left the engine. A stream is known by its request's seed.
class TimedEngine final : public Engine {
 public:
  TimedEngine(std::unique_ptr<Engine> engine, int num_streams, int64_t num_tokens)
      : engine_(std::move(engine)), num_tokens_(num_tokens) {
    for (int i = 0; i < num_streams; ++i) {
      times_.push_back(std::make_unique<std::atomic<int64_t>[]>(static_cast<size_t>(num_tokens)));
    }
  }
  const ModelDescription& model() const override { return engine_->model(); }
  Result<uint64_t> submit(Request request) override {
    const size_t stream = request.sampling.seed;
    if (stream < times_.size()) {
      request.on_output = [this, times = times_[stream].get(), place = int64_t{0},
                           inner = std::move(request.on_output)](Output output) mutable {
        for (size_t i = 0; i < output.tokens.size() && place < num_tokens_; ++i) {
          times[place++].store(now_ns(), std::memory_order_relaxed);
        }
        return inner(std::move(output));
      };
    }
    return engine_->submit(std::move(request));
  }
  void cancel(uint64_t id) override { engine_->cancel(id); }
  void drain() override { engine_->drain(); }
  EngineStats stats() const override { return engine_->stats(); }
  int64_t time_of(size_t stream, size_t token) const {
    return times_[stream][token].load(std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<Engine> engine_;
  int64_t num_tokens_;
  std::vector<std::unique_ptr<std::atomic<int64_t>[]>> times_;
};

std::vector<int32_t> loop_tokens(const Tokenizer& tokenizer) {
  std::string text = "<|channel|>final<|message|>";
  for (int i = 0; i < 200; ++i) text += " word";
  return tokenizer.encode_with_specials(text + "<|end|><|start|>assistant");
}

// events[k]: which token brought the k-th event of content.
std::vector<size_t> events_of(const Format& format, const std::vector<int32_t>& line, int64_t n) {
  const auto parser = format.make_parser({});
  std::vector<size_t> out;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    std::vector<Delta> deltas;
    parser->push(line[i % line.size()], deltas);
    out.insert(out.end(), deltas.size(), i);
  }
  return out;
}

double process_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::string http_post(const std::string& body) {
  return fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

// Connections of one thread, non-blocking, waited for together.
class Clients {
 public:
  explicit Clients(int port) : port_(port), epoll_(epoll_create1(0)) {}
  ~Clients() {
    for (const int fd : fds_) ::close(fd);
    ::close(epoll_);
  }
  void open(size_t count) {
    while (fds_.size() < count) {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port_));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      CHECK_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0,
               "connection {}: {}", fds_.size(), std::strerror(errno));
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = fds_.size();
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
      fds_.push_back(fd);
    }
  }
  void send(size_t client, const std::string& text) {
    const ssize_t size = ::send(fds_[client], text.data(), text.size(), MSG_NOSIGNAL);
    CHECK_EQ(size, std::ssize(text), "client {}: a request was not taken whole", client);
  }
  // Calls take(client, bytes) for what has come, until `end`.
  template <class Take>
  void run_until(Clock::time_point end, const Take& take) {
    std::vector<epoll_event> events(512);
    std::vector<char> buffer(1 << 18);
    while (Clock::now() < end) {
      const int n = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 10);
      for (int i = 0; i < n; ++i) {
        const size_t client = events[static_cast<size_t>(i)].data.u64;
        const ssize_t size = ::read(fds_[client], buffer.data(), buffer.size());
        CHECK_GT(size, 0, "client {} was cut off", client);
        take(client, std::string_view(buffer.data(), static_cast<size_t>(size)));
      }
    }
  }

 private:
  int port_, epoll_;
  std::vector<int> fds_;
};

size_t count(std::string_view text, std::string_view word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + word.size())) ++n;
  return n;
}

double percentile(std::vector<int64_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  return static_cast<double>(
             sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))]) /
         1e6;
}

void run_streams(int port, const LoadOptions& o, const TimedEngine& engine,
                 const std::vector<size_t>& events) {
  Clients clients(port);
  const auto num_streams = static_cast<size_t>(o.num_streams);
  clients.open(num_streams);
  const int64_t max_tokens = static_cast<int64_t>(events.back());
  for (size_t i = 0; i < num_streams; ++i) {
    clients.send(
        i,
        http_post(fmt::format(
            R"({{"messages":[{{"role":"user","content":"Hi"}}],"stream":true,"max_tokens":{},"seed":{}}})",
            max_tokens, i)));
  }
  std::vector<size_t> seen(num_streams);
  std::vector<std::string> texts(num_streams);  // ends of what was read
  std::vector<int64_t> latencies;
  bool is_measuring = false;
  int64_t num_events = 0;
  const auto take = [&](size_t client, std::string_view bytes) {
    const int64_t now = now_ns();
    constexpr std::string_view kMark = "\"delta\":{\"content\":\"";
    // What a read cut off may be the mark's beginning.
    std::string& text = texts[client];
    text += bytes;
    for (size_t n = count(text, kMark); n > 0; --n, ++seen[client]) {
      if (!is_measuring || seen[client] == 0) continue;  // the first has no token behind it
      ++num_events;
      latencies.push_back(now - engine.time_of(client, events[seen[client] - 1]));
    }
    text.erase(0, text.size() - std::min(text.size(), kMark.size() - 1));
  };
  clients.run_until(Clock::now() + std::chrono::seconds(3), take);
  is_measuring = true;
  const double begin_cpu = process_seconds() - thread_seconds();
  const auto begin = Clock::now();
  clients.run_until(
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o.seconds)),
      take);
  const double cpu = process_seconds() - thread_seconds() - begin_cpu;
  const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
  std::sort(latencies.begin(), latencies.end());
  const double p50 = percentile(latencies, 0.5), p99 = percentile(latencies, 0.99);
  fmt::print(
      "streamed: {} streams, {:.0f} tokens/s offered, {:.0f} events/s delivered, {:.2f} cores, "
      "{:.0f} events/s a core; added latency p50 {:.2f} ms, p99 {:.2f} ms (x{:.1f}), max {:.2f} "
      "ms\n",
      o.num_streams, o.rate, static_cast<double>(num_events) / wall, cpu / wall,
      static_cast<double>(num_events) / cpu, p50, p99, p99 / p50, percentile(latencies, 1));
}

void run_requests(int port, const LoadOptions& o) {
  constexpr size_t kClients = 64;
  Clients clients(port);
  clients.open(kClients);
  const std::string request = http_post(
      R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":1,"seed":4000000000})");
  int64_t num_answers = 0;
  const auto take = [&](size_t client, std::string_view bytes) {
    // The answer's last bytes come with it: one write sends it.
    if (!bytes.ends_with("}}}")) return;
    ++num_answers;
    clients.send(client, request);
  };
  for (size_t i = 0; i < kClients; ++i) clients.send(i, request);
  clients.run_until(Clock::now() + std::chrono::seconds(1), take);
  num_answers = 0;
  const double begin_cpu = process_seconds() - thread_seconds();
  const auto begin = Clock::now();
  clients.run_until(begin + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(o.seconds / 2)),
                    take);
  const double cpu = process_seconds() - thread_seconds() - begin_cpu;
  const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
  fmt::print("whole: {} connections, {:.0f} requests/s, {:.2f} cores, {:.0f} requests/s a core\n",
             kClients, static_cast<double>(num_answers) / wall, cpu / wall,
             static_cast<double>(num_answers) / cpu);
}

// The server in a thread of its own, until end().
class ServerThread {
 public:
  ServerThread(int num_http_threads, Engine& engine, std::shared_ptr<const Tokenizer> tokenizer,
               std::shared_ptr<const Format> format) {
    ServerOptions options;
    options.http.port = 0;
    options.http.num_threads = num_http_threads;
    options.model_names = {"scripted"};
    options.grace_seconds = 0;
    options.on_ready = [this](const std::string& address) {
      std::lock_guard lock(mutex_);
      port_ = std::stoi(address.substr(address.rfind(':') + 1));
      ready_.notify_one();
    };
    thread_ = std::thread([=, &engine] { run_server(options, engine, tokenizer, format); });
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return port_ != 0; });
  }
  ~ServerThread() {
    std::raise(SIGTERM);
    thread_.join();
  }
  int port() const { return port_; }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  int port_ = 0;
  std::thread thread_;
};

std::unique_ptr<Engine> make_engine(const Tokenizer& tokenizer, std::vector<int32_t> line,
                                    int64_t delay_us) {
  return make_scripted_engine({.lines = {{.tokens = std::move(line), .delay_us = delay_us}},
                               .is_loop = true,
                               .model = {.architecture = "Scripted",
                                         .model_type = "gpt_oss",
                                         .vocab_size = tokenizer.vocab_size(),
                                         .max_model_len = 1 << 20}});
}

void run_load(const LoadOptions& o) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  const auto format = make_format("harmony", tokenizer);
  CHECK(format.ok(), "harmony");
  const std::vector<int32_t> line = loop_tokens(*tokenizer);
  const double per_stream = o.rate / o.num_streams;
  const auto num_tokens = static_cast<int64_t>(per_stream * (o.seconds + 10)) + 100;
  {
    TimedEngine engine(make_engine(*tokenizer, line, static_cast<int64_t>(1e6 / per_stream)),
                       o.num_streams, num_tokens);
    const ServerThread server(o.num_http_threads, engine, tokenizer, *format);
    run_streams(server.port(), o, engine, events_of(**format, line, num_tokens));
  }
  TimedEngine engine(make_engine(*tokenizer, line, 0), 0, 0);
  const ServerThread server(o.num_http_threads, engine, tokenizer, *format);
  run_requests(server.port(), o);
}

}  // namespace
}  // namespace briar

int main(int argc, char** argv) {
  briar::LoadOptions o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (flag == "--streams")
      o.num_streams = static_cast<int>(value);
    else if (flag == "--rate")
      o.rate = value;
    else if (flag == "--seconds")
      o.seconds = value;
    else if (flag == "--http-threads")
      o.num_http_threads = static_cast<int>(value);
    else
      return fmt::print(stderr, "unknown flag {}\n", flag), 2;
  }
  briar::run_load(o);
  return 0;
}
