#include "engine/step_trace.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/result.h"

namespace briar {

double steady_now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

StepTrace::StepTrace(const std::string& path) {
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), "w"));
  if (!file_) throw_user_error("--step-trace {}: {}", path, std::strerror(errno));
  for (const auto& [lane, name] : {std::pair(Lane::kEngine, "engine"), {Lane::kDevice, "device"}}) {
    begin_record();
    fmt::print(file_.get(),
               R"({{"name":"thread_name","ph":"M","pid":1,"tid":{},"args":{{"name":"{}"}}}})",
               static_cast<int>(lane), name);
  }
}

StepTrace::~StepTrace() {
  if (file_) std::fputs("\n]\n", file_.get());
}

// The format lets a file end without its bracket, so what a crash leaves can be opened too.
void StepTrace::begin_record() {
  std::fputs(has_records_ ? ",\n" : "[\n", file_.get());
  has_records_ = true;
}

void StepTrace::event(Lane lane, const char* name, double begin_us, double end_us, uint64_t step_id,
                      int64_t num_tokens, int64_t num_seqs) {
  if (!file_) return;
  begin_record();
  fmt::print(
      file_.get(),
      R"({{"name":"{}","ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"step":{},"tokens":{},"sequences":{}}}}})",
      name, static_cast<int>(lane), begin_us, end_us - begin_us, step_id, num_tokens, num_seqs);
}

void StepTrace::counter(const char* name, double at_us, double value) {
  if (!file_) return;
  begin_record();
  fmt::print(file_.get(),
             R"({{"name":"{}","ph":"C","pid":1,"ts":{:.3f},"args":{{"value":{:.3f}}}}})", name,
             at_us, value);
}

}  // namespace briar
