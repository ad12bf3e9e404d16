#include "tuner/progress.hpp"

#include <gtest/gtest.h>

#include "kernels/errors.hpp"
#include "tuner/cli.hpp"

namespace rowtune {
namespace {

TEST(ProgressLine, SaysHowFarHowLongAndWhoLeads) {
  const Workload workload = Workload::of(Operation::softmax, Dtype::bf16, Shape::of(256, 1000));
  TuneStatus status;
  status.done = 137;
  status.total = 620;
  status.seconds_left = 125;
  status.workload = &workload;
  status.leader = Contender{split_config_name("warp.b128.v8"), 12.34, 12.3, false};
  EXPECT_EQ(ConsoleProgress::line(status, "", 200),
            "137/620  22 %  2 min 5 s left  softmax bf16 256x1000 cold  best 12.34 us warp.b128.v8");
  EXPECT_EQ(ConsoleProgress::line(status, "", 20).size(), 20u);  // a terminal's line must not wrap
}

TEST(ProgressLine, NothingKnownYet) { EXPECT_EQ(ConsoleProgress::line({}, "", 200), "0/0  100 %  0.0 s left"); }

TEST(Duration, ReadsAndWrites) {
  EXPECT_EQ(parse_duration("90s"), 90);
  EXPECT_EQ(parse_duration("10m"), 600);
  EXPECT_EQ(parse_duration("1h30m"), 5400);
  EXPECT_EQ(parse_duration("45"), 45);
  EXPECT_EQ(parse_duration("0.5m"), 30);
  for (const char* text : {"", "m", "10x", "-5s", "0", "nan", "1e999", "10 m"})
    EXPECT_THROW(parse_duration(text), UsageError) << text;
  EXPECT_EQ(format_duration(0.84), "0.8 s");
  EXPECT_EQ(format_duration(59.6), "60 s");
  EXPECT_EQ(format_duration(185), "3 min 5 s");
  EXPECT_EQ(format_duration(7800), "2 h 10 min");
}

TEST(Units, AreSensible) {
  EXPECT_EQ(format_bytes(272629760), "260 MB");
  EXPECT_EQ(format_bytes(1536), "1.5 KB");
  EXPECT_EQ(format_bytes(100), "100 B");
  EXPECT_EQ(format_us(1.2345), "1.234");
  EXPECT_EQ(format_us(12345.6), "12346");
}

TEST(Nearest, FindsATypoAndNotAnotherWord) {
  EXPECT_EQ(nearest("--opp", {"--op", "--dtype"}), "--op");
  EXPECT_EQ(nearest("tuna", {"tune", "best"}), "tune");
  EXPECT_EQ(nearest("banana", {"tune", "best"}), "");
}

}  // namespace
}  // namespace rowtune
