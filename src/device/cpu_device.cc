#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"

namespace briar {
namespace {

class CpuDevice;

class CpuEvent final : public Event {
 public:
  bool query() const override { return true; }
  void synchronize() const override {}
};

class CpuStream final : public Stream {
 public:
  explicit CpuStream(CpuDevice& device) : device_(device) {}
  Device& device() const override;
  std::unique_ptr<Event> record() override { return std::make_unique<CpuEvent>(); }
  void wait(const Event& event) override { event.synchronize(); }
  void synchronize() override {}
  void copy(void* to, const void* from, int64_t num_bytes) override {
    if (num_bytes > 0) std::memcpy(to, from, static_cast<size_t>(num_bytes));
  }
  ThreadPool& pool() const;

 private:
  CpuDevice& device_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int num_threads) : pool_(num_threads) {}

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string name() const override { return fmt::format("cpu, {} threads", pool_.num_threads()); }

  int64_t available_bytes() const override {
    std::ifstream meminfo("/proc/meminfo");
    for (std::string key, unit; meminfo >> key;) {
      int64_t kib = 0;
      meminfo >> kib;
      std::getline(meminfo, unit);
      if (key == "MemAvailable:") return kib * 1024;
    }
    return static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  }

  void* allocate(int64_t num_bytes) override {
    // Huge pages where they help: a decode step streams all weights, and 4 KiB pages would cost it
    // a page-table walk every 64 lines.
    constexpr int64_t kHugePage = int64_t{2} << 20;
    const bool is_large = num_bytes >= kHugePage;
    const int64_t alignment = is_large ? kHugePage : Buffer::kAlignment;
    const int64_t rounded = (num_bytes + alignment - 1) / alignment * alignment;
    void* data = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
    if (data == nullptr) {
      throw_user_error("out of memory: cannot allocate {} bytes on the CPU ({} available)",
                       num_bytes, available_bytes());
    }
    if (is_large) madvise(data, static_cast<size_t>(rounded), MADV_HUGEPAGE);
    return data;
  }

  void free(void* data, int64_t /*num_bytes*/) noexcept override { std::free(data); }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<CpuStream>(*this); }
  ThreadPool& pool() { return pool_; }

 private:
  ThreadPool pool_;
};

Device& CpuStream::device() const { return device_; }
ThreadPool& CpuStream::pool() const { return device_.pool(); }

}  // namespace

std::unique_ptr<Device> make_cpu_device(int num_threads) {
  return std::make_unique<CpuDevice>(num_threads);
}

ThreadPool& cpu_thread_pool(Stream& stream) {
  CHECK_EQ(stream.device().kind(), DeviceKind::kCpu, "a CPU kernel on a stream of {}",
           stream.device().name());
  return static_cast<CpuStream&>(stream).pool();
}

}  // namespace briar
