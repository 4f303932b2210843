// CUDA devices. Only in builds with BRIAR_CUDA.
#pragma once

#include <memory>
#include <source_location>
#include <stdexcept>

#include "device/device.h"

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

}  // namespace briar
