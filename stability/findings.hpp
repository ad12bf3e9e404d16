#pragma once
// What the study's results say, as numbers that the reports put into words and pictures.

#include <optional>
#include <string>
#include <vector>

#include "stability/study.hpp"

namespace rowtune::stability {

/// What a report needs besides the results.
struct StudyFacts {
  StudyOptions options;
  std::string precision;  ///< of the references
};

/// Narrows results; empty fields match everything.
struct Query {
  std::string experiment, test_case, op, method, order;
  std::optional<Dtype> dtype, arithmetic;
};
bool matches(const Query& query, const Result& result);
std::vector<const Result*> select(const std::vector<Result>& results, const Query& query);
/// The only match, or null.
const Result* find_one(const std::vector<Result>& results, const Query& query);

struct BoundCheck {
  std::size_t proven = 0, exceeded = 0, heuristic = 0;
  double closest = 0;  ///< the largest error / proven bound
  std::vector<const Result*> exceeding;
};
BoundCheck check_bounds(const std::vector<Result>& results);

/// Where a method first failed (Result::failed) when one factor grew in magnitude.
struct FirstFailure {
  std::string experiment, op, method, order;
  Dtype dtype, arithmetic;
  std::optional<double> at;        ///< factor value; absent: it never failed
  std::optional<double> at_kappa;  ///< condition number achieved there, where there is one
  double last = 0;                 ///< the largest factor value that was tried
  std::string how;                 ///< NaN, negative, error...
};
/// One entry per method, order and precision of an experiment. `direction` +1 or -1: only factor values of that sign
/// count (0 counts as both).
std::vector<FirstFailure> first_failures(const std::vector<Result>& results, const std::string& experiment,
                                         const std::string& op, int direction);
std::string failure_in_words(const Result& result);

struct CaseSummary {
  std::string id, op;
  Dtype dtype;
  std::size_t kernels = 0, kernels_right = 0, others = 0, others_right = 0;
  std::vector<std::string> wrong;  ///< `one_pass sequential (f32)`...
};
std::vector<CaseSummary> summarise_cases(const std::vector<Result>& results);

/// Average and least LRE of the sd of the nine sets.
struct StrdScore {
  double average = 0, least = 0;
  int sets = 0;
};
StrdScore score_strd(const std::vector<Result>& results, const std::string& method, const std::string& order,
                     bool against_certified);

}  // namespace rowtune::stability
