#include "cli/doctor_command.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <boost/version.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "cli/version.h"
#include "device/device.h"
#include "kernels/cpu/isa.h"

namespace briar {
namespace {

namespace bj = boost::json;

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

bj::array cpu_features() {
  bj::array out;
  auto add = [&](const char* name, bool has) {
    if (has) out.push_back(name);
  };
  add("avx2", __builtin_cpu_supports("avx2"));
  add("fma", __builtin_cpu_supports("fma"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512bw", __builtin_cpu_supports("avx512bw"));
  add("avx512vnni", __builtin_cpu_supports("avx512vnni"));
  add("avx512bf16", __builtin_cpu_supports("avx512bf16"));
  return out;
}

int64_t num_nvidia_devices() {
  int64_t count = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", ignored)) {
    (void)entry;
    ++count;
  }
  return count;
}

bj::object report() {
  const auto device = make_cpu_device(1);
  std::string isa, isa_reason;
  try {
    isa = to_string(cpu_isa());
    isa_reason = std::getenv("BRIAR_ISA") != nullptr ? "asked for by BRIAR_ISA"
                                                     : "the best this processor has";
  } catch (const UserError& e) {
    isa = "none";
    isa_reason = e.what();
  }
  const int64_t num_gpus = num_nvidia_devices();
  return {
      {"version", kVersion},
      {"cpu", bj::object{{"model", cpu_model()},
                         {"features", cpu_features()},
                         {"physical_cores", num_physical_cores()}}},
      {"memory", bj::object{{"available_bytes", device->available_bytes()}}},
      {"gpus", num_gpus},
      {"libraries", bj::object{{"boost", BOOST_LIB_VERSION}, {"fmt", FMT_VERSION}}},
      {"uses", bj::object{{"device", "cpu"},
                          {"device_reason",
                           num_gpus > 0 ? "this build has no CUDA backend" : "there is no GPU"},
                          {"threads", num_physical_cores()},
                          {"threads_reason", "one a physical core: decoding is bound by memory"},
                          {"kernels", isa},
                          {"kernels_reason", isa_reason}}}};
}

}  // namespace

int run_doctor(bool json) {
  const bj::object r = report();
  if (json) {
    fmt::print("{}\n", bj::serialize(r));
    return 0;
  }
  const bj::object& cpu = r.at("cpu").as_object();
  const bj::object& uses = r.at("uses").as_object();
  auto text = [](const bj::object& o, const char* key) {
    return std::string(o.at(key).as_string());
  };
  fmt::print("briar {}\n", kVersion);
  fmt::print("cpu       {}, {} physical cores\n", text(cpu, "model"), num_physical_cores());
  fmt::print("features  {}\n", bj::serialize(cpu.at("features")));
  fmt::print("memory    {:.1f} GiB available\n",
             static_cast<double>(r.at("memory").at("available_bytes").as_int64()) / (1 << 30));
  fmt::print("gpus      {}\n", r.at("gpus").as_int64());
  fmt::print("uses      device {} ({})\n", text(uses, "device"), text(uses, "device_reason"));
  fmt::print("          {} threads ({})\n", uses.at("threads").as_int64(),
             text(uses, "threads_reason"));
  fmt::print("          {} kernels ({})\n", text(uses, "kernels"), text(uses, "kernels_reason"));
  return 0;
}

}  // namespace briar
