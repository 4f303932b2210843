// Devices, streams, events and memory. Two kinds exist: the CPU, whose streams are eager (every
// call has happened when it returns), and CUDA devices, whose streams are queues. Code above
// kernels/ is written for queues and therefore runs unchanged on both.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/tensor.h"

namespace briar {

class ThreadPool;
class Device;

enum class DeviceKind { kCpu, kCuda };

// Owns one allocation on a device; aligned to kAlignment bytes, contents undefined.
class Buffer {
 public:
  static constexpr int64_t kAlignment = 256;

  Buffer() = default;
  Buffer(Device& device, int64_t num_bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  void* data() const { return data_; }
  int64_t num_bytes() const { return num_bytes_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  int64_t num_bytes_ = 0;
};

// A point in a stream's queue. On the CPU it has always passed.
class Event {
 public:
  virtual ~Event() = default;
  // True once all work before the recording is done.
  virtual bool query() const = 0;
  // Blocks the host until then.
  virtual void synchronize() const = 0;
};

// An ordered queue of work on one device. Used by one host thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device& device() const = 0;
  virtual std::unique_ptr<Event> record() = 0;
  virtual void wait(const Event& event) = 0;
  virtual void synchronize() = 0;
  // Copies between host and device memory, or within either, in queue order.
  virtual void copy(void* to, const void* from, int64_t num_bytes) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;
  // Bytes that can still be allocated without swapping, by the operating system's or driver's own
  // account.
  virtual int64_t available_bytes() const = 0;
  virtual void* allocate(int64_t num_bytes) = 0;
  virtual void free(void* data, int64_t num_bytes) noexcept = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
};

// The CPU with `num_threads` compute threads (0: one a physical core).
std::unique_ptr<Device> make_cpu_device(int num_threads);

// The threads behind a CPU stream; a CHECK fails for other kinds. Kernels use it.
ThreadPool& cpu_thread_pool(Stream& stream);

}  // namespace briar
