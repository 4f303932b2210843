#include "kernels/test/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace briar {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Error as a multiple of the limit; infinite for anything that cannot be measured.
double error_ratio(double got, double ref, double limit) {
  if (std::isnan(ref)) return std::isnan(got) ? 0 : kInfinity;
  if (std::isinf(ref)) return got == ref ? 0 : kInfinity;
  const double error = std::fabs(got - ref);
  if (error == 0) return 0;
  return std::isfinite(error) ? error / limit : kInfinity;
}

double rms_of_finite(std::span<const double> values) {
  double sum = 0;
  size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

}  // namespace

double rms_limit(Tolerance tolerance, size_t num_elements) {
  return tolerance.rms *
         (1 + 4 / std::sqrt(static_cast<double>(std::max<size_t>(num_elements, 1))));
}

Comparison compare(std::span<const float> got, std::span<const double> ref, Tolerance tolerance) {
  Comparison result;
  const double size = std::max(rms_of_finite(ref), tolerance.least_size);
  double squares = 0;
  size_t num_finite = 0;
  for (size_t i = 0; i < ref.size(); ++i) {
    const double limit = tolerance.abs * size + tolerance.rel * std::fabs(ref[i]);
    const double ratio = error_ratio(got[i], ref[i], limit);
    if (!(ratio <= 1)) ++result.num_bad;
    if (ratio > result.worst_ratio) result.worst = i, result.worst_ratio = ratio;
    if (!std::isfinite(ref[i]) || !std::isfinite(got[i])) continue;
    squares += (got[i] - ref[i]) * (got[i] - ref[i]);
    ++num_finite;
  }
  if (squares > 0) result.rms_error = std::sqrt(squares / static_cast<double>(num_finite)) / size;
  return result;
}

testing::AssertionResult matches(const std::string& name, std::span<const float> got,
                                 std::span<const double> ref, Tolerance tolerance) {
  if (got.size() != ref.size()) {
    return testing::AssertionFailure()
           << fmt::format("{}: {} elements, expected {}", name, got.size(), ref.size());
  }
  const Comparison c = compare(got, ref, tolerance);
  const double max_rms = rms_limit(tolerance, ref.size());
  if (std::getenv("BRIAR_SHOW_ERRORS") != nullptr) {
    fmt::print("errors of {}: worst {:.3f} of the limit, rms {:.2e} of {:.2e}\n", name,
               c.worst_ratio, c.rms_error, max_rms);
  }
  std::string text;
  if (c.num_bad > 0) {
    text = fmt::format(
        "{}: {} of {} elements out of tolerance; worst at {}: got {}, want {} ({:.1f} times the "
        "limit)",
        name, c.num_bad, ref.size(), c.worst, got[c.worst], ref[c.worst], c.worst_ratio);
  }
  if (!(c.rms_error <= max_rms)) {
    text += fmt::format("{}{}: rms error {:.2e} exceeds {:.2e}", text.empty() ? "" : "\n", name,
                        c.rms_error, max_rms);
  }
  if (text.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << text;
}

}  // namespace briar
