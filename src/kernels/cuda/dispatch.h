// How an op reaches its CUDA kernel: the stream's device decides.
#pragma once

#include "device/device.h"

// Declares the CUDA form of an op, namespace sm90.
#define BRIAR_DECLARE_CUDA_KERNEL(...) \
  namespace sm90 {                     \
  __VA_ARGS__;                         \
  }

// Runs sm90::name(stream, args) and returns from the caller if the stream belongs to a GPU. Builds
// without CUDA have no such streams and do not refer to the symbol.
#ifdef BRIAR_CUDA
#define BRIAR_RETURN_IF_CUDA(name, stream, args)                  \
  do {                                                            \
    if ((stream).device().kind() == ::briar::DeviceKind::kCuda) { \
      return sm90::name(stream, args);                            \
    }                                                             \
  } while (false)
#else
#define BRIAR_RETURN_IF_CUDA(name, stream, args) static_cast<void>(stream)
#endif
