// The one way a kernel is launched. For .cu files only.
#pragma once

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "device/cuda_device.h"

namespace briar {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  int64_t shared_bytes = 0;  // dynamic shared memory
};

namespace detail {

inline void check_launch(cudaError_t code, const char* kernel, const LaunchShape& s) {
  if (code == cudaSuccess) return;
  throw CudaError(fmt::format(
      "{} failed: {} ({}); grid {} x {} x {}, block {} x {} x {}, {} bytes of shared memory",
      kernel, cudaGetErrorName(code), cudaGetErrorString(code), s.grid.x, s.grid.y, s.grid.z,
      s.block.x, s.block.y, s.block.z, s.shared_bytes));
}

}  // namespace detail

// Queues `kernel`. An empty grid launches nothing. Kernels overlap their start with the end of the
// one before (programmatic dependent launch): each begins with wait_for_previous_kernel()
// (kernels/cuda/common.cuh) before it touches memory.
template <class... Params, class... Args>
void launch(Stream& stream, const char* name, void (*kernel)(Params...), const LaunchShape& shape,
            Args&&... args) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  if (shape.shared_bytes > 48 * 1024) {
    detail::check_launch(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(shape.shared_bytes)),
                         name, shape);
  }
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = cuda_stream(stream);
  config.attrs = &overlap;
  config.numAttrs = 1;
  detail::check_launch(cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...), name,
                       shape);
}

}  // namespace briar
