// The one comparator of all kernel tests: a kernel's output against its fp64 reference.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>

namespace briar {

// What a kernel may be off by. Both bounds must hold: whole-tensor distances do not see one wrong
// element among millions, and elementwise bounds do not see a bias that is small everywhere.
struct Tolerance {
  double rel;  // an element's error per |reference element| ...
  double abs;  // ... plus this times the size of the tensor: the rms of the (finite) reference
  double rms;  // rms of all errors / the same size, for many elements; rms_limit() for few
  double least_size = 0;  // of the tensor, where what goes in is larger than what comes out
};

inline constexpr Tolerance kExact{0, 0, 0};

struct Comparison {
  size_t num_bad = 0;      // elements out of tolerance; a NaN or infinity out of place is one
  size_t worst = 0;        // index of the element with the largest error / limit
  double worst_ratio = 0;  // its error / limit
  double rms_error = 0;    // rms of the finite errors / size of the tensor
};

// The rms of few rounding errors scatters more: tolerance.rms * (1 + 4 / sqrt(n)) for n elements.
double rms_limit(Tolerance tolerance, size_t num_elements);

// NaN must meet NaN and an infinity the same infinity.
Comparison compare(std::span<const float> got, std::span<const double> ref, Tolerance tolerance);

// For EXPECT_TRUE. With BRIAR_SHOW_ERRORS in the environment every call prints what it measured:
// tolerances are to stay within twice the worst of it.
testing::AssertionResult matches(const std::string& name, std::span<const float> got,
                                 std::span<const double> ref, Tolerance tolerance);

}  // namespace briar
