// Writes what every step spent its time on, as a file that Perfetto and chrome://tracing open
// (Trace Event Format, "JSON Array Format").
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace briar {

// Microseconds of the steady clock, as all times here.
double steady_now_us();

class StepTrace {
 public:
  enum class Lane { kEngine = 1, kDevice = 2 };

  // Throws UserError if the file cannot be written. An empty path: a trace that does nothing.
  explicit StepTrace(const std::string& path);
  ~StepTrace();

  void event(Lane lane, const char* name, double begin_us, double end_us, uint64_t step_id,
             int64_t num_tokens, int64_t num_seqs);
  void counter(const char* name, double at_us, double value);
  bool is_on() const { return file_ != nullptr; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void begin_record();

  std::unique_ptr<std::FILE, Close> file_;
  bool has_records_ = false;
};

}  // namespace briar
