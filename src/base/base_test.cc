#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <boost/json.hpp>
#include <fstream>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "base/result.h"
#include "base/thread_pool.h"

namespace briar {
namespace {

TEST(Check, MessageHoldsPlaceExpressionValuesAndReason) {
  const int got = 33;
  try {
    CHECK_EQ(got % 8, 0, "num_q_heads={} must be a multiple of num_kv_heads={}", got, 8);
    FAIL() << "the check passed";
  } catch (const CheckError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("src/base/base_test.cc:"), text.npos) << text;
    EXPECT_NE(text.find("got % 8 == 0 (1 vs 0)"), text.npos) << text;
    EXPECT_NE(text.find("num_q_heads=33 must be a multiple of num_kv_heads=8"), text.npos) << text;
  }
}

TEST(Check, PassesWithoutEvaluatingTheReason) {
  int evaluated = 0;
  auto count = [&] { return ++evaluated; };
  CHECK_LE(1, 2, "{}", count());
  EXPECT_EQ(evaluated, 0);
}

TEST(Result, ValueOfAnErrorIsOurBugAndNamesTheError) {
  Result<int> failed = make_error("{} is not a number", "x7");
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "x7 is not a number");
  EXPECT_THROW(failed.value(), CheckError);
  EXPECT_EQ(Result<int>(4).value(), 4);
}

TEST(Json, ReportsSourceAndByte) {
  EXPECT_EQ(json::parse("{\"a\": [1, 2]}", "x.json").value().as_object()["a"].as_array().size(),
            2u);
  for (const char* bad : {"", "{", "[1,]", "{} x", "\xff", "{\"a\":1"}) {
    auto parsed = json::parse(bad, "x.json");
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().message.rfind("x.json: ", 0), 0u) << parsed.error().message;
  }
}

TEST(Json, RefusesDeepAndLongTexts) {
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_FALSE(json::parse(deep, "deep").ok());
  EXPECT_TRUE(json::parse(deep, "deep", {.max_depth = 1000}).ok());
  EXPECT_FALSE(json::parse("[1,2,3]", "long", {.max_bytes = 3}).ok());
}

TEST(MappedFile, ReadsEmptyAndMissingFiles) {
  const std::string path = testing::TempDir() + "/briar_mapped_file";
  std::ofstream(path).close();
  EXPECT_EQ(MappedFile::open(path).value().bytes().size(), 0u);
  std::ofstream(path) << "seven b";
  EXPECT_EQ(MappedFile::open(path).value().text(), "seven b");
  EXPECT_FALSE(MappedFile::open(path + ".missing").ok());
  EXPECT_FALSE(MappedFile::open(testing::TempDir()).ok());
}

TEST(ThreadPool, RunsEveryTaskExactlyOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int64_t n : {0, 1, 2, 3, 1000}) {
      for (int round = 0; round < 200; ++round) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
        auto task = [&](int64_t i) { hits[static_cast<size_t>(i)]++; };
        pool.run(n, task);
        for (auto& h : hits) ASSERT_EQ(h.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, RangesCoverWithoutOverlap) {
  ThreadPool pool(3);
  for (int64_t size : {0, 1, 7, 64, 1001}) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(size));
    pool.for_ranges(size, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)]++;
    });
    for (auto& h : hits) ASSERT_EQ(h.load(), 1);
  }
}

TEST(ThreadPool, PassesOnAnExceptionAndGoesOn) {
  ThreadPool pool(2);
  auto bad = [](int64_t i) {
    if (i == 5) throw std::runtime_error("task 5");
  };
  EXPECT_THROW(pool.run(10, bad), std::runtime_error);
  std::atomic<int> done{0};
  auto good = [&](int64_t) { done++; };
  pool.run(10, good);
  EXPECT_EQ(done.load(), 10);
}

}  // namespace
}  // namespace briar
