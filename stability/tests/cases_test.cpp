#include "stability/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/errors.hpp"
#include "stability/datasets.hpp"

namespace rowtune::stability {
namespace {

KnownCase one(const std::string& fields) {
  const std::vector<KnownCase> cases = parse_cases("[{\"id\": \"x\", " + fields + "}]", "test");
  return cases.at(0);
}

const CaseVerdict& verdict_of(const std::vector<CaseVerdict>& verdicts, const std::string& method,
                              const std::string& order) {
  const auto found = std::find_if(verdicts.begin(), verdicts.end(),
                                  [&](const CaseVerdict& v) { return v.method == method && v.order == order; });
  if (found == verdicts.end()) throw std::runtime_error("no verdict on " + method);
  return *found;
}

class PublicCases : public testing::TestWithParam<KnownCase> {};

TEST_P(PublicCases, TheFormsThatKernelsUseAreRight) {
  int used = 0;
  for (const CaseVerdict& v : judge_case(GetParam())) {
    used += v.used_by_kernels;
    EXPECT_TRUE(!v.used_by_kernels || v.right) << v.method << " " << v.order << ": " << v.detail;
  }
  EXPECT_GT(used, 0);
}

INSTANTIATE_TEST_SUITE_P(All, PublicCases, testing::ValuesIn(parse_cases(public_cases(), "public")),
                         [](const auto& row) {
                           std::string name = row.param.id;
                           std::replace_if(
                               name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(NaiveForms, AreShownWrongWhereTheyAre) {
  std::set<std::string> one_pass, unsafe, folded, low_sums;
  for (const KnownCase& known : parse_cases(public_cases(), "public"))
    for (const CaseVerdict& v : judge_case(known)) {
      if (v.right) continue;
      if (v.method == "one_pass") one_pass.insert(v.id);
      if (v.method == "unsafe") unsafe.insert(v.id);
      if (v.method == "three_pass_folded") folded.insert(v.id);
      if (v.arithmetic == Dtype::f16) low_sums.insert(v.id);
    }
  for (const char* id :
       {"torch-2470", "clickhouse-114250", "daft-7468", "solvcon-1522", "ttmetal-55159-1e18", "ln-40000"})
    EXPECT_TRUE(one_pass.contains(id)) << id;
  for (const char* id : {"dotnet-3648", "flashinfer-4401", "log-softmax-40000"}) EXPECT_TRUE(unsafe.contains(id)) << id;
  EXPECT_TRUE(folded.contains("log-softmax-minus-1e7"));
  for (const char* id : {"last-43", "rmsnorm-f16-60000", "variance-f16-1000"}) EXPECT_TRUE(low_sums.contains(id)) << id;
}

TEST(Cases, AWrongExpectationIsSeen) {
  const KnownCase known =
      one(R"("op": "variance", "dtype": "f32", "input": [["1", 1], ["2", 1]], "expect": {"var_pop": "0.2501"})");
  for (const CaseVerdict& v : judge_case(known)) EXPECT_FALSE(v.right) << v.method;
}

TEST(Cases, NonFiniteValuesMustMatchInKind) {
  const KnownCase known =
      one(R"("op": "softmax", "dtype": "f32", "input": [["inf", 1], ["1", 1]], "expect": {"output": [["0", 2]]})");
  for (const CaseVerdict& v : judge_case(known)) {
    EXPECT_FALSE(v.right) << v.method;
    EXPECT_TRUE(std::isinf(v.worst));
  }
}

TEST(Cases, ATolReplacesTheFormula) {
  const std::string fields =
      R"("op": "variance", "dtype": "f32", "input": [["1", 1], ["2", 1]], "expect": {"var_pop": "0.26"}, "tol": )";
  EXPECT_TRUE(verdict_of(judge_case(one(fields + "\"0.02\"")), "two_pass", "sequential").right);
  EXPECT_FALSE(verdict_of(judge_case(one(fields + "\"0.001\"")), "two_pass", "sequential").right);
}

TEST(Cases, RepeatSpellsInputAndOutputOut) {
  const KnownCase known = one(
      R"("op": "softmax", "dtype": "f32", "input": [["0", 1], ["-inf", 1]], "repeat": 3, "expect": {"output": [["0.333333333333", 1], ["0", 1]]})");
  EXPECT_EQ(known.input.size(), 6u);
  EXPECT_EQ(known.output.size(), 6u);
  EXPECT_TRUE(verdict_of(judge_case(known), "online", "lanes32").right);
}

TEST(Cases, ValuesThatOverflowAParserAreRoundedToo) {
  const KnownCase known = one(
      R"("op": "softmax", "dtype": "f16", "input": [["-1e999", 1], ["1e-999", 1]], "expect": {"output": [["0", 1], ["1", 1]]})");
  EXPECT_TRUE(std::isinf(known.input[0]));
  EXPECT_EQ(known.input[1], 0);
  EXPECT_TRUE(verdict_of(judge_case(known), "three_pass", "lanes256").right);
}

TEST(Cases, EpsStaysUnrounded) {
  const KnownCase known = one(
      R"("op": "rmsnorm", "dtype": "f16", "input": [["0.001", 1]], "eps": "1e-5", "expect": {"output": [["0.3015", 1]]}, "tol": "0.001")");
  EXPECT_EQ(known.eps, 1e-5L);
  EXPECT_TRUE(verdict_of(judge_case(known), "mean_square", "lanes256").right);
}

struct Malformed {
  const char *name, *json, *says;
};
class MalformedCases : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedCases, AreRefusedWithASentence) {
  try {
    parse_cases(GetParam().json, "file.json");
    FAIL() << "taken";
  } catch (const EnvironmentError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("file.json"), std::string::npos) << what;
    EXPECT_NE(what.find(GetParam().says), std::string::npos) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, MalformedCases,
    testing::Values(
        Malformed{"truncated", "[{\"id\": ", "not JSON"}, Malformed{"no_list", "{}", "list"},
        Malformed{"no_object", "[3]", "object"}, Malformed{"no_id", "[{}]", "'id'"},
        Malformed{"no_op", R"([{"id": "a"}])", "'op'"},
        Malformed{"op", R"([{"id": "a", "op": "median", "dtype": "f32", "input": [], "expect": {}}])", "layernorm"},
        Malformed{"dtype", R"([{"id": "a", "op": "softmax", "dtype": "f8"}])", "f64"},
        Malformed{"empty", R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [], "expect": {"mean": "1"}}])",
                  "empty"},
        Malformed{"word", R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["one", 1]]}])", "'one'"},
        Malformed{"count", R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", -1]]}])", "[value, count]"},
        Malformed{"huge", R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", 99999999999]]}])",
                  "elements"},
        Malformed{"expect",
                  R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", 1]], "expect": {"mode": "1"}}])",
                  "mode"},
        Malformed{
            "length",
            R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", 2]], "expect": {"output": [["1", 3]]}}])",
            "3 values"},
        Malformed{"repeated",
                  R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", 2]], "repeat": 99999999999}])",
                  "elements"},
        Malformed{
            "repeated_hugely",
            R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", 2]], "repeat": 25555555555555555555555}])",
            "whole number"},
        Malformed{"repeated_by_halves",
                  R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", 2]], "repeat": 2.5}])",
                  "whole number"},
        Malformed{"nothing_repeated",
                  R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", 0]], "repeat": 99999999999}])",
                  "empty"},
        Malformed{
            "many_outputs",
            R"([{"id": "a", "op": "softmax", "dtype": "f32", "input": [["1", 16777217]], "expect": {"output": [["1", 1]]}}])",
            "elements"},
        Malformed{"nested", "[[[[[[[[[[[[[[[[[[[[[[[[", "nested"}),
    [](const auto& row) { return row.param.name; });

TEST(Cases, NestingDoesNotEatTheStack) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THROW(parse_cases(deep, "deep"), EnvironmentError);
}

TEST(Cases, AMissingFileIsAnEnvironmentError) { EXPECT_THROW(read_cases("/nonexistent/c.json"), EnvironmentError); }

}  // namespace
}  // namespace rowtune::stability
