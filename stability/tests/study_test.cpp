// The quick study: the figures that theory and others' measurements give, the reports, the records. A test runs the
// experiments it looks at; only one runs all of them, since every test is a process of its own.

#include "stability/study.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "db/database.hpp"
#include "stability/findings.hpp"
#include "stability/records.hpp"
#include "stability/reference.hpp"
#include "stability/report_csv.hpp"
#include "stability/report_html.hpp"
#include "stability/report_md.hpp"

namespace rowtune::stability {
namespace {

StudyFacts quick_facts() {
  StudyFacts facts;
  facts.options.quick = true;
  facts.precision = reference_precision();
  return facts;
}

/// The results of one experiment, or of all.
const std::vector<Result>& study_of(const std::string& experiment) {
  static std::map<std::string, std::vector<Result>> known;
  const auto found = known.find(experiment);
  if (found != known.end()) return found->second;
  std::vector<Cell> cells;
  for (Cell& cell : study_cells(quick_facts().options))
    if (experiment == "all" || cell.experiment == experiment) cells.push_back(std::move(cell));
  return known[experiment] = run_cells(cells, [](std::size_t, std::size_t, const std::string&) {});
}

double merit(const char* test_case, const char* method, const char* order) {
  const Result* r = find_one(study_of("merit"), {"merit", test_case, "variance", method, order, {}, {}});
  return r != nullptr && r->rel_error ? *r->rel_error : std::nan("");
}

TEST(Study, MeritFollowsTheOrderOfTheSum) {
  // n = 2^20, mean 1e4 sd: sequential two-pass loses to Welford, over 256 lanes it is the other way round, and
  // pairwise two-pass beats both.
  const char* at = "mean_1e+04_shuffled";
  EXPECT_GT(merit(at, "two_pass", "sequential"), 1e3);
  EXPECT_LT(merit(at, "welford", "sequential"), 5e-3);
  EXPECT_LT(merit(at, "two_pass", "lanes256"), merit(at, "welford", "lanes256"));
  EXPECT_LT(merit(at, "two_pass", "pairwise"), 1e-6);
  EXPECT_LT(merit(at, "two_pass", "pairwise"), merit(at, "two_pass", "lanes256"));
  EXPECT_LT(merit("mean_1e+06_shuffled", "two_pass", "pairwise"), merit("mean_1e+06_shuffled", "welford", "lanes256"));
  EXPECT_GT(merit("mean_1e+06_shuffled", "two_pass", "sequential"),
            merit("mean_1e+06_shuffled", "welford", "sequential"));
}

TEST(Study, SortedDataBreaksSequentialWelford) { EXPECT_GT(merit("mean_1e+04_ascending", "welford", "sequential"), 1); }

TEST(Study, OnePassVarianceIsNegativeInSomeCells) {
  std::int64_t negative = 0;
  for (const Result* r : select(study_of("condition"), {"", "", "variance", "one_pass", "", {}, {}}))
    negative += r->negative_count;
  EXPECT_GT(negative, 0);
  for (const Result* r : select(study_of("condition"), {"", "", "variance", "welford", "", {}, {}}))
    EXPECT_EQ(r->negative_count, 0);
}

TEST(Study, PublicLogitsOverflowAsPublished) {
  const auto overflowed = [](const char* method, Dtype arithmetic) {
    const Result* r = find_one(study_of("logits"), {"logits", "", "", method, "", {}, arithmetic});
    return r == nullptr ? -1 : static_cast<int>(r->value.value_or(-1));
  };
  EXPECT_EQ(overflowed("unsafe", Dtype::f16), 475);
  EXPECT_EQ(overflowed("unsafe_f32_sums", Dtype::f16), 471);
  EXPECT_EQ(overflowed("three_pass", Dtype::f16), 0);
  EXPECT_EQ(overflowed("online", Dtype::f16), 0);
  EXPECT_EQ(overflowed("three_pass", Dtype::f32), 0);
}

TEST(Study, CertifiedSetsScoreAsPublished) {
  for (const char* order : {"pairwise", "lanes256"}) {
    const StrdScore score = score_strd(study_of("strd"), "corrected_two_pass", order, true);
    EXPECT_EQ(score.sets, 9);
    EXPECT_NEAR(score.average, 13.3, 0.05) << order;
    EXPECT_NEAR(score.least, 8.3, 0.06) << order;
  }
}

TEST(Study, NumAcc4InF32IsNoFailureOfAMethod) {
  const auto found = select(study_of("strd"), {"strd", "NumAcc4", "sd", "", "", Dtype::f32, Dtype::f32});
  ASSERT_FALSE(found.empty());
  for (const Result* r : found) {
    EXPECT_EQ(r->note, "variance 0 after rounding");
    EXPECT_FALSE(r->rel_error.has_value());
    EXPECT_FALSE(r->failed());
  }
  EXPECT_EQ(select(study_of("strd"), {"strd", "NumAcc4", "sd", "none", "", Dtype::f16, {}}).size(),
            2u);  // does not fit
}

TEST(Study, KernelFormsAreRightOnThePublicCases) {
  for (const CaseSummary& c : summarise_cases(study_of("cases"))) EXPECT_EQ(c.kernels, c.kernels_right) << c.id;
}

TEST(Study, TheSameSeedGivesTheSameBytes) {
  std::vector<Cell> cells = moments_cells(quick_facts().options);
  cells.erase(cells.begin(), cells.begin() + 20);
  cells.resize(25);
  const auto none = [](std::size_t, std::size_t, const std::string&) {};
  const std::string first = csv_of(run_cells(cells, none));
  EXPECT_EQ(first, csv_of(run_cells(cells, none)));
  StudyOptions other = quick_facts().options;
  other.seed += 1;
  std::vector<Cell> others = moments_cells(other);
  others.erase(others.begin(), others.begin() + 20);
  others.resize(25);
  EXPECT_NE(first, csv_of(run_cells(others, none)));
}

TEST(Study, AFailingCellIsRethrown) {
  std::vector<Cell> cells = {{"x", "y", []() -> std::vector<Result> { throw std::runtime_error("boom"); }}};
  EXPECT_THROW(run_cells(cells, [](std::size_t, std::size_t, const std::string&) {}), std::runtime_error);
}

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> all(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      all.emplace_back();
    else
      all.back() += c;
  }
  return all;
}

void check_bounds_hold(const std::vector<Result>& results) {
  const BoundCheck check = check_bounds(results);
  EXPECT_GT(check.proven, 5000u);
  EXPECT_EQ(check.exceeded, 0u);
  EXPECT_GT(check.closest, 0.05);  // bounds far above everything would prove little
}

void check_csv(const std::vector<Result>& results) {
  std::istringstream csv(csv_of(results));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(
      line.rfind("experiment,case,op,method,order,dtype,n,kappa,rel_error,ulp_error,lre,lre_ceiling,bound,bound_kind,"
                 "nan_count,inf_count,negative_count,false_zero_count",
                 0),
      0u);
  const std::size_t columns = fields(line).size();
  std::size_t lines = 0;
  for (; std::getline(csv, line); ++lines) ASSERT_EQ(fields(line).size(), columns) << line;
  EXPECT_EQ(lines, results.size());
}

TEST(Csv, NamesNonFiniteNumbers) {
  EXPECT_EQ(csv_number(std::nan("")), "nan");
  EXPECT_EQ(csv_number(-std::nan("")), "nan");
  EXPECT_EQ(csv_number(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(csv_number(std::nullopt), "");
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
}

void check_markdown(const std::vector<Result>& results) {
  const std::string text = markdown_report(results, quick_facts());
  for (const char* words : {"with one running sum Welford wins", "475 of 2500", "88.7228", "11.094",
                            "13.3 on average, 8.3 at least", "64 significand bits", "0 exceed",
                            "What follows for the kernels", "How to choose", "variance 0 after rounding"})
    EXPECT_NE(text.find(words), std::string::npos) << words;
}

TEST(Markdown, ShoutsWhenABoundIsExceeded) {
  std::vector<Result> results = {study_of("logits").front()};
  results[0].bound_kind = BoundKind::proven;
  results[0].bound = 1e-9;
  results[0].rel_error = 1;
  EXPECT_EQ(check_bounds(results).exceeded, 1u);
  EXPECT_NE(markdown_report(results, quick_facts()).find("**Bound exceeded**"), std::string::npos);
}

void check_html(const std::vector<Result>& results) {
  const std::string page = html_report(results, quick_facts());
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
  EXPECT_NE(page.find("d3js.org"), std::string::npos);  // its licence line: D3 is inside
  EXPECT_NE(page.find("id=\"results\""), std::string::npos);
}

void check_records(const std::vector<Result>& results) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("rowtune_study_" + std::to_string(::getpid()) + ".db");
  {
    db::Database database = db::Database::open(path.string(), db::Database::Mode::read_write);
    record(database, results, quick_facts());
    record(database, results, quick_facts());  // the same run: replaced, not doubled
    const std::vector<db::StabilityRow> rows = database.stability();
    ASSERT_EQ(rows.size(), results.size());
    EXPECT_EQ(rows.front().experiment, results.front().experiment);
    EXPECT_EQ(rows.back().case_name, results.back().test_case);
  }
  std::filesystem::remove(path);
}

TEST(QuickStudy, HoldsItsBoundsAndFillsEveryReport) {
  const std::vector<Result>& results = study_of("all");
  check_bounds_hold(results);
  check_csv(results);
  check_markdown(results);
  check_html(results);
  check_records(results);
}

}  // namespace
}  // namespace rowtune::stability
