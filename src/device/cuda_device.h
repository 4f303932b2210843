// CUDA devices. Only in builds with BRIAR_CUDA.
#pragma once

#include <memory>
#include <source_location>
#include <stdexcept>

#include "device/device.h"

struct CUstream_st;  // cudaStream_t, without CUDA's headers

namespace briar {

// A failed CUDA call. CUDA errors stick to the process: it must be restarted.
struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Number of GPUs the driver shows; 0 where there is no driver.
int num_cuda_devices();

// GPU `ordinal` of those that CUDA_VISIBLE_DEVICES leaves. Throws UserError if there is no such GPU
// or if it is not of compute capability 9.0 (Hopper).
std::unique_ptr<Device> make_cuda_device(int ordinal);

// The CUDA handle behind a stream; a CHECK fails for other kinds. Kernels use it.
CUstream_st* cuda_stream(Stream& stream);

// Memory for the partial results of the kernel launched next on this stream, at most
// kCudaScratchBytes. Kernels of one stream run in order and share it: nothing survives in it.
void* cuda_scratch(Stream& stream, int64_t num_bytes);
inline constexpr int64_t kCudaScratchBytes = int64_t{64} << 20;

// Multiprocessors of the stream's GPU.
int num_multiprocessors(Stream& stream);

}  // namespace briar
