// The generated header's look-up on the host: a truth table of match kinds, agreement with the JSON table, and time.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "rowtune_dispatch.cuh"
#include "tuner/dispatch_table.hpp"

namespace rowtune {
namespace {

using dispatch::Question;
using Table = dispatch::Tuned<dispatch::Operation::softmax, bf16>;
constexpr auto op = dispatch::Operation::softmax;
constexpr const auto& table = Table::tables[0];
constexpr const auto& first = table.entries[0];
constexpr const auto& last = table.entries[table.entry_count - 1];

constexpr dispatch::MatchKind ask(long long rows, long long cols, int alignment = 16, int congruence = 16) {
  return dispatch::look_up<op, bf16>(0, {rows, cols, 2, alignment, congruence}).kind;
}

// Constant expressions: the compiler itself looks up.
static_assert(ask(first.rows, first.cols, first.alignment) == dispatch::MatchKind::exact);
static_assert(ask(last.rows, last.cols, last.alignment) == dispatch::MatchKind::exact);
static_assert(ask(first.rows + 1, first.cols, first.alignment) == dispatch::MatchKind::near);
static_assert(ask(first.rows, first.cols, 2) == dispatch::MatchKind::near, "another alignment class");
static_assert(ask(first.rows, last.cols * 8LL + 1) == dispatch::MatchKind::out_of_range);
static_assert(ask(2147483647, 2147483647) == dispatch::MatchKind::out_of_range);
static_assert(ask(0, first.cols) == dispatch::MatchKind::out_of_range);
static_assert(ask(first.rows, 0) == dispatch::MatchKind::out_of_range);

// What a kernel declares itself counts: three vectors of 1024 threads are 48 KB, and its merges are beside them.
static_assert(!dispatch::asks_for_shared(0, 3 * 1024 * 16));
static_assert(dispatch::asks_for_shared(384, 3 * 1024 * 16));

TEST(HeaderLookupTest, TruthTableOfMatchKinds) {
  using dispatch::look_up;
  using dispatch::MatchKind;
  const Question tuned{first.rows, first.cols, 2, first.alignment, 16};
  EXPECT_EQ((dispatch::table_of<op, bf16>(Table::devices[0])), 0);
  EXPECT_EQ((look_up<op, bf16>(0, tuned).kind), MatchKind::exact);
  EXPECT_EQ((look_up<op, bf16>(0, tuned).entry), &first);

  auto slice = Table::devices[0];
  slice.units /= 2;
  EXPECT_EQ((dispatch::table_of<op, bf16>(slice)), -1) << "a part of the device is another device";
  auto other = Table::devices[0];
  other.model = "NVIDIA H100";
  EXPECT_EQ((dispatch::table_of<op, bf16>(other)), -1);
  const auto refused = look_up<op, bf16>(-1, tuned);
  EXPECT_EQ(refused.kind, MatchKind::other_device);
  EXPECT_EQ(refused.kernel, -1) << "the base";

  EXPECT_EQ((look_up<op, bf16>(0, tuned, true).kind), MatchKind::not_tuned) << "with weights";
  EXPECT_EQ((look_up<dispatch::Operation::layernorm, struct NoDtype>(0, tuned).kind), MatchKind::not_tuned);
  // Tensors that are misaligned apart: nothing that was tuned reads them.
  const auto apart = look_up<op, bf16>(0, {64, 32000, 2, 2, 2});
  EXPECT_EQ(apart.kernel, -1);
  EXPECT_EQ(apart.kind, MatchKind::out_of_range);
  for (const auto kind :
       {MatchKind::exact, MatchKind::near, MatchKind::out_of_range, MatchKind::other_device, MatchKind::not_tuned})
    EXPECT_GT(std::string(dispatch::describe(kind)).size(), 10u);
}

TEST(HeaderLookupTest, EveryTunedShapeIsFoundAndItsKernelServesIt) {
  for (int i = 0; i < table.entry_count; ++i) {
    const auto& e = table.entries[i];
    const Question q{e.rows, e.cols, 2, e.alignment, 16};
    const auto answer = dispatch::look_up<op, bf16>(0, q);
    EXPECT_EQ(answer.entry, &e);
    EXPECT_GT(e.time_us, 0);
    EXPECT_TRUE(answer.kernel < 0 || dispatch::serves(Table::kernels[answer.kernel], q));
  }
}

TEST(HeaderLookupTest, AgreesWithTheJsonTable) {
  const auto json = read_dispatch(ROWTUNE_SAMPLE_TABLE "/dispatch.json");
  const auto found = std::find_if(json.tables.begin(), json.tables.end(), [](const DispatchTable& t) {
    return t.op == Operation::softmax && t.dtype == Dtype::bf16;
  });
  ASSERT_NE(found, json.tables.end());
  const LookupTable same(*found);
  std::mt19937 random(1);
  int kinds[5] = {};
  for (int i = 0; i < 20000; ++i) {
    const auto extent = [&](double octaves) {
      return static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution<double>(0, octaves)(random)));
    };
    auto shape = Shape::of(extent(23), extent(21));
    if (i % 3 == 0) shape.cols = (shape.cols + 7) / 8 * 8, shape.ld = shape.cols;
    if (i % 5 == 0) shape.off = i % 9;
    const auto a = same.look_up(shape);
    const auto b = dispatch::look_up<op, bf16>(0, {shape.rows, shape.cols, 2, alignment_of(shape, Dtype::bf16), 16});
    ASSERT_EQ(a.kind, b.kind) << to_string(shape);
    ASSERT_EQ(a.kernel, b.kernel) << to_string(shape);
    ++kinds[static_cast<int>(a.kind)];
  }
  EXPECT_GT(kinds[static_cast<int>(dispatch::MatchKind::near)], 1000);
  EXPECT_GT(kinds[static_cast<int>(dispatch::MatchKind::out_of_range)], 100);
}

TEST(HeaderLookupTest, CostsNothingBesideALaunch) {
  // Asked for: 50 ns. A launch takes over 2,000. The limit here is loose: machines of CI are busy.
  constexpr int rounds = 2000;
  double best = 1e9;
  int sum = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round) {
      const auto& e = table.entries[round % table.entry_count];
      sum += dispatch::look_up<op, bf16>(0, {e.rows + round % 2, e.cols, 2, e.alignment, 16}).kernel;
    }
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
    best = std::min(best, passed.count() / rounds);
  }
  RecordProperty("nanoseconds", fmt::format("{:.1f}", best));
  fmt::print("{:.1f} ns a look-up, {} entries, {} regions ({})\n", best, table.entry_count,
             table.aligned_count + table.ragged_count, sum % 2);
  EXPECT_LT(best, 1000);
}

}  // namespace
}  // namespace rowtune
