#include "device/device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device/arena.h"
#include "device/shape_check.h"

namespace briar {
namespace {

std::string failure_of(const auto& body) {
  try {
    body();
  } catch (const CheckError& e) {
    return e.what();
  }
  return "no failure";
}

TEST(Bf16, RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f).bits, 0x3f80);
  EXPECT_EQ(to_bf16(1.00390625f).bits, 0x3f80);  // exactly half way: to the even one below
  EXPECT_EQ(to_bf16(1.01171875f).bits, 0x3f82);  // half way: to the even one above
  EXPECT_EQ(to_bf16(3.4e38f).bits, 0x7f80);      // beyond the largest bf16: infinity
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001u)))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 value{static_cast<uint16_t>(bits)};
    if (std::isnan(to_float(value))) continue;
    ASSERT_EQ(to_bf16(to_float(value)).bits, bits);
  }
}

TEST(TensorView, SlicesAndStrides) {
  std::vector<float> data(24);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  TensorView t(data.data(), DType::kFp32, {2, 3, 4});
  EXPECT_EQ(t.describe(), "fp32 [2, 3, 4]");
  EXPECT_EQ(t.at(1).at(2).ptr<float>()[3], 23.f);
  TensorView c = t.at(1).columns(1, 3);
  EXPECT_EQ(c.stride(0), 4);
  EXPECT_FALSE(c.is_contiguous());
  EXPECT_EQ(c.rows(1, 2).ptr<float>()[0], 17.f);
  EXPECT_EQ(t.reshape({6, 4}).at(5).size(0), 4);
  EXPECT_THROW(c.reshape({6}), CheckError);
  EXPECT_THROW(t.ptr<uint16_t>(), CheckError);
  EXPECT_THROW(t.rows(1, 3), CheckError);
  EXPECT_FALSE(TensorView());
  EXPECT_TRUE(TensorView(nullptr, DType::kFp32, {0, 4}));
}

TEST(ShapeCheck, NamesBothTensorsAndSizes) {
  TensorView x(nullptr, DType::kBf16, {0, 5120}), w(nullptr, DType::kBf16, {4096});
  const std::string text = failure_of([&] {
    ShapeCheck s("rms_norm");
    s("x", x, {DType::kBf16}, {"num_tokens", "hidden_size"})("weight", w, {DType::kBf16},
                                                             {"hidden_size"});
  });
  EXPECT_NE(text.find("weight.shape[0] is 4096, but hidden_size = 5120 (from x.shape[1])"),
            text.npos)
      << text;
  ShapeCheck s("rms_norm");
  s("x", x, {DType::kFp32, DType::kBf16}, {"num_tokens", 5120});
  EXPECT_EQ(s["num_tokens"], 0);
}

TEST(ShapeCheck, NamesDtypesRanksAndAbsence) {
  TensorView x(nullptr, DType::kFp32, {3, 4});
  EXPECT_NE(failure_of([&] {
              ShapeCheck("op")("x", x, {DType::kBf16, DType::kUint8}, {3, 4});
            }).find("x is fp32, expected bf16 or uint8"),
            std::string::npos);
  EXPECT_NE(failure_of([&] {
              ShapeCheck("op")("x", x, {DType::kFp32}, {"n"});
            }).find("x is fp32 [3, 4], expected 1 dimensions"),
            std::string::npos);
  EXPECT_NE(failure_of([&] {
              ShapeCheck("op")("x", TensorView(), {DType::kFp32}, {"n"});
            }).find("x is absent"),
            std::string::npos);
}

TEST(Arena, AlignsReusesAndRefuses) {
  auto device = make_cpu_device(1);
  Arena arena(*device, 1024, "test");
  TensorView a = arena.tensor(DType::kBf16, {3});
  {
    Arena::Scope scope(arena);
    TensorView b = arena.tensor(DType::kFp32, {4});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % 64, 0u);
    EXPECT_EQ(arena.used_bytes(), 128);
  }
  EXPECT_EQ(arena.used_bytes(), 64);
  EXPECT_EQ(arena.peak_bytes(), 128);
  EXPECT_NE(a.data(), nullptr);
  EXPECT_NE(failure_of([&] { arena.bytes(2000); }).find("the test arena is full: 2000 bytes"),
            std::string::npos);
}

TEST(CpuDevice, StreamsAreEager) {
  auto device = make_cpu_device(2);
  auto stream = device->make_stream();
  int from = 7, to = 0;
  stream->copy(&to, &from, sizeof(int));
  EXPECT_EQ(to, 7);
  EXPECT_TRUE(stream->record()->query());
  EXPECT_GT(device->available_bytes(), 0);
}

}  // namespace
}  // namespace briar
