#include "stability/orders.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rowtune::stability {
namespace {

/// Which elements, and the most additions that one of them went through.
struct Trace {
  std::vector<std::int64_t> elements;
  int additions = 0;
};

Trace trace(const Summation& summation, std::int64_t n) {
  return reduce(
      summation, n, Trace{},
      [](Trace t, std::int64_t i) {
        t.additions = t.elements.empty() ? 0 : t.additions + 1;
        t.elements.push_back(i);
        return t;
      },
      [](Trace a, const Trace& b) {
        if (a.elements.empty()) return b;  // adding nothing rounds nothing
        if (b.elements.empty()) return a;
        a.elements.insert(a.elements.end(), b.elements.begin(), b.elements.end());
        a.additions = std::max(a.additions, b.additions) + 1;
        return a;
      });
}

struct Shape {
  Summation summation;
  std::int64_t n;
};

class Orders : public testing::TestWithParam<Shape> {};

TEST_P(Orders, TakeEachElementOnceWithinTheirDepth) {
  const auto [summation, n] = GetParam();
  Trace t = trace(summation, n);
  std::sort(t.elements.begin(), t.elements.end());
  ASSERT_EQ(static_cast<std::int64_t>(t.elements.size()), n);
  for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(t.elements[static_cast<std::size_t>(i)], i);
  EXPECT_LE(t.additions, std::max(0.0, depth_of(summation, n) - 1));
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t n : {0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1000, 4096, 5000})
    for (const Summation& s : {Summation{Order::sequential, 1}, Summation{Order::pairwise, 1},
                               Summation{Order::lanes, 1}, Summation{Order::lanes, 8}, Summation{Order::lanes, 32},
                               Summation{Order::lanes, 256}, Summation{Order::lanes, 1024}})
      all.push_back({s, n});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Orders, testing::ValuesIn(shapes()), [](const auto& row) {
  return to_string(row.param.summation) + "_" + std::to_string(row.param.n);
});

TEST(Lanes, AreStridedAndMergedWarpByWarp) {
  // 64 elements over 64 lanes: within the first warp lane 0 meets 16, then 8, 4, 2, 1; the second warp comes last.
  const Trace t = trace({Order::lanes, 64}, 64);
  const std::vector<std::int64_t> first(t.elements.begin(), t.elements.begin() + 4);
  EXPECT_EQ(first, (std::vector<std::int64_t>{0, 16, 8, 24}));
  EXPECT_LT(*std::max_element(t.elements.begin(), t.elements.begin() + 32), 32);
  EXPECT_EQ(t.additions, 6);
}

TEST(Depth, IsTheDocumentedOne) {
  EXPECT_EQ(depth_of(Summation{Order::sequential, 1}, 1000), 1000);
  EXPECT_EQ(depth_of(Summation{Order::lanes, 256}, 1000), 4 + 8);
  EXPECT_EQ(depth_of(Summation{Order::pairwise, 1}, 1000), 11);
  EXPECT_EQ(ceil_log2(1), 0);
  EXPECT_EQ(ceil_log2(1024), 10);
  EXPECT_EQ(ceil_log2(1025), 11);
}

}  // namespace
}  // namespace rowtune::stability
