#include "device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <cstdlib>

#include "base/log.h"
#include "base/result.h"

namespace briar {
namespace {

void check_cuda(cudaError_t code, const char* expression,
                std::source_location where = std::source_location::current()) {
  if (code == cudaSuccess) return;
  throw CudaError(fmt::format("{}:{}: {} failed: {} ({})", where.file_name(), where.line(),
                              expression, cudaGetErrorName(code), cudaGetErrorString(code)));
}

#define CUDA_CHECK(expression) check_cuda((expression), #expression)

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(cudaStream_t stream) {
    CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventRecord(event_, stream));
  }
  ~CudaEvent() override {
    if (cudaEventDestroy(event_) != cudaSuccess) log_error("cudaEventDestroy failed");
  }
  bool query() const override {
    const cudaError_t code = cudaEventQuery(event_);
    if (code != cudaErrorNotReady) CUDA_CHECK(code);
    return code == cudaSuccess;
  }
  void synchronize() const override { CUDA_CHECK(cudaEventSynchronize(event_)); }
  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  CudaStream(Device& device, int ordinal, int num_multiprocessors)
      : device_(device),
        scratch_(device, kCudaScratchBytes),
        num_multiprocessors_(num_multiprocessors) {
    CUDA_CHECK(cudaSetDevice(ordinal));
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~CudaStream() override {
    if (cudaStreamDestroy(stream_) != cudaSuccess) log_error("cudaStreamDestroy failed");
  }
  Device& device() const override { return device_; }
  std::unique_ptr<Event> record() override { return std::make_unique<CudaEvent>(stream_); }
  void wait(const Event& event) override {
    // Events of other kinds (the CPU's) have passed by the time anyone can wait for them on a GPU.
    if (const auto* cuda = dynamic_cast<const CudaEvent*>(&event)) {
      CUDA_CHECK(cudaStreamWaitEvent(stream_, cuda->handle()));
    } else {
      event.synchronize();
    }
  }
  void synchronize() override { CUDA_CHECK(cudaStreamSynchronize(stream_)); }
  void copy(void* to, const void* from, int64_t num_bytes) override {
    CUDA_CHECK(
        cudaMemcpyAsync(to, from, static_cast<size_t>(num_bytes), cudaMemcpyDefault, stream_));
  }
  cudaStream_t handle() const { return stream_; }
  void* scratch() const { return scratch_.data(); }
  int num_multiprocessors() const { return num_multiprocessors_; }

 private:
  Device& device_;
  Buffer scratch_;
  int num_multiprocessors_;
  cudaStream_t stream_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, const cudaDeviceProp& properties)
      : ordinal_(ordinal),
        name_(properties.name),
        num_multiprocessors_(properties.multiProcessorCount) {}

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string name() const override { return fmt::format("cuda:{}, {}", ordinal_, name_); }
  int64_t available_bytes() const override {
    size_t free = 0, total = 0;
    CUDA_CHECK(cudaSetDevice(ordinal_));
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<int64_t>(free);
  }
  void* allocate(int64_t num_bytes) override {
    void* data = nullptr;
    CUDA_CHECK(cudaSetDevice(ordinal_));
    const cudaError_t code = cudaMalloc(&data, static_cast<size_t>(num_bytes));
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // an allocation failure does not stick; forget it
      throw_user_error("out of memory: cannot allocate {} bytes on {} ({} available)", num_bytes,
                       name(), available_bytes());
    }
    CUDA_CHECK(code);
    return data;
  }
  void free(void* data, int64_t /*num_bytes*/) noexcept override {
    if (cudaFree(data) != cudaSuccess) log_error("cudaFree failed");
  }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<CudaStream>(*this, ordinal_, num_multiprocessors_);
  }

 private:
  int ordinal_;
  std::string name_;
  int num_multiprocessors_;
};

CudaStream& as_cuda(Stream& stream) {
  CHECK_EQ(stream.device().kind(), DeviceKind::kCuda, "a CUDA kernel on a stream of {}",
           stream.device().name());
  return static_cast<CudaStream&>(stream);
}

}  // namespace

CUstream_st* cuda_stream(Stream& stream) { return as_cuda(stream).handle(); }

void* cuda_scratch(Stream& stream, int64_t num_bytes) {
  CHECK_LE(num_bytes, kCudaScratchBytes, "scratch memory of a kernel");
  return as_cuda(stream).scratch();
}

int num_multiprocessors(Stream& stream) { return as_cuda(stream).num_multiprocessors(); }

int num_cuda_devices() {
  // Kernels are loaded when the driver starts, which is here, and not at their first launch, which
  // may be inside a graph capture or while another GPU spins on this one.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::unique_ptr<Device> make_cuda_device(int ordinal) {
  if (ordinal < 0 || ordinal >= num_cuda_devices()) {
    throw_user_error("there is no GPU {}: the CUDA driver shows {}", ordinal, num_cuda_devices());
  }
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal));
  if (properties.major != 9 || properties.minor != 0) {
    throw_user_error(
        "GPU {} is {} of compute capability {}.{}; Briar's kernels are for 9.0 (Hopper)", ordinal,
        properties.name, properties.major, properties.minor);
  }
  return std::make_unique<CudaDevice>(ordinal, properties);
}

}  // namespace briar
