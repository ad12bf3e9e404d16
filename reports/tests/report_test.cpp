#include "reports/report.hpp"

#include <sstream>

#include "reports/findings.hpp"
#include "reports/tests/fixture.hpp"

namespace rowtune::reports::test {
namespace {

class ReportTest : public db::test::DatabaseTest {
 protected:
  db::Database database = open();
  std::string markdown() const {
    std::ostringstream out;
    write_markdown(database, out);
    return out.str();
  }
  void expect_says(const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' in:\n" << text;
  }
};

TEST_F(ReportTest, EmptyDatabaseSaysWhatIsMissingAndHowToGetIt) {
  const auto text = markdown();
  expect_says(text, "This database is empty");
  expect_says(text, "rowtune tune");
  expect_says(text, "rowtune stability");
}

TEST_F(ReportTest, SaysWhatWasTunedOnWhatAndWhen) {
  database.record_all(grid("Test GPU"));
  const auto text = markdown();
  expect_says(text, "630 results for 120 workloads, measured from 2026-01-01T00:00:01.000Z");
  expect_says(text, "| Test GPU | units=1 | NVRTC 13.0 |");
  for (const char* section : {"## In short", "### copy, the ceiling", "### softmax", "### fused_add_rmsnorm",
                              "## Failures", "## Coverage", "## Be careful with", "## How to read it", "## Next"})
    expect_says(text, section);
  EXPECT_EQ(text.find("### rmsnorm"), std::string::npos) << "not tuned, not mentioned";
}

TEST_F(ReportTest, TheSameDatabaseGivesTheSameBytes) {
  database.record_all(grid("Test GPU"));
  EXPECT_EQ(markdown(), markdown());
}

TEST_F(ReportTest, FailuresAreGroupedByReason) {
  database.record_all(grid("Test GPU"));
  const auto f = findings_of(database);
  ASSERT_EQ(f.failure_groups.size(), 1u);
  EXPECT_EQ(f.failure_groups[0].count, 24);
  EXPECT_EQ(f.failure_groups[0].reason, "needs N registers of N");
  expect_says(markdown(), "| launch_error | 24 | needs N registers of N |");
}

TEST_F(ReportTest, WinnersCarryTheirEvidence) {
  using namespace db::test;
  database.record(base(measured(Workload::of(Operation::copy, Dtype::bf16, Shape::of(64, 1000)), "block.b256", 4)));
  database.record(base(measured(softmax(), "block.b256", 10)));
  database.record(measured(softmax(), "warp.b128", 5));
  database.record(measured(softmax(), "warp.b64", 5.01));
  expect_says(markdown(), "| 64 | 1000 | warp.b128 | 5.000 | 4.950 | 5.050 | 51.2 | 80.0 % | 2.00x | 1 | 0.5000 |");
}

TEST_F(ReportTest, CaveatsApplyOrStayAway) {
  using namespace db::test;
  auto m = base(measured(softmax(), "block.b256", 10));
  database.record(m);
  auto f = findings_of(database);
  const auto has = [&](const std::string& words) {
    return std::any_of(f.caveats.begin(), f.caveats.end(),
                       [&](const auto& c) { return c.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(has("no ceiling"));
  EXPECT_FALSE(has("had not settled"));
  EXPECT_FALSE(has("measured in part"));
  EXPECT_FALSE(has("several regimes"));
  m.settled = false;
  database.record(m, true);
  database.begin_sweep(key_of(softmax()), 7);
  auto warm = softmax();
  warm.regime = Regime::warm;
  database.record(failed(warm, "block.b256", Outcome::crash, "illegal access"));
  f = findings_of(database);
  EXPECT_TRUE(has("had not settled"));
  EXPECT_TRUE(has("measured in part"));
  EXPECT_TRUE(has("several regimes"));
  EXPECT_TRUE(has("no config that ran right"));
}

TEST_F(ReportTest, HostileNamesStayText) {
  auto m = base(measured(db::test::softmax(), "block.b256", 10));
  m.key.device_model = "GPU | <script>alert(1)</script> `x` **b**\nnext";
  database.record(m);
  const auto text = markdown();
  EXPECT_EQ(text.find("<script>"), std::string::npos);
  EXPECT_EQ(text.find("\nnext"), std::string::npos);
  expect_says(text, "GPU \\| &lt;script&gt;");
}

TEST_F(ReportTest, ReasonsForgetNumbers) {
  EXPECT_EQ(reason_of("needs 12.5 KB, has 48\nsecond line"), "needs N KB, has N");
  EXPECT_EQ(reason_of(""), "no message");
  EXPECT_EQ(reason_of("at 3."), "at N.");
}

TEST_F(ReportTest, CsvHasEveryConfig) {
  database.record_all(grid("Test GPU"));
  std::ostringstream out;
  write_csv(database, out);
  const auto text = out.str();
  EXPECT_EQ(text.find("device,op,dtype,rows,cols,regime,config,"), 0u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 631);
  EXPECT_NE(text.find("\"needs"), std::string::npos) << "failures too, their line breaks quoted";
}

TEST_F(ReportTest, StudyAndOtherLibrariesAppearWhenThere) {
  db::StabilityRow row;
  row.experiment = "kappa", row.op = "variance", row.method = "one_pass", row.dtype = "f32", row.negative_count = 3;
  row.rel_error = 0.25;
  database.record_stability({"run", "2026-01-01T00:00:00Z", "", "", "", ""}, {row});
  db::Baseline baseline;
  baseline.device_model = "Test GPU", baseline.workload = db::test::softmax(), baseline.impl = "library";
  baseline.time_us = 20;
  database.record_baselines({baseline});
  const auto text = markdown();
  expect_says(text, "Nothing was tuned into this database yet");
  expect_says(text, "| variance | one_pass | f32 | 1 | 0.2500 | 0 | 0 | 3 | 0 |");
  expect_says(text, "## Other libraries");
}

}  // namespace
}  // namespace rowtune::reports::test
