#pragma once
// Every method on one row: what experiments, data sets and the user's rows share.

#include <string>
#include <vector>

#include "stability/measure.hpp"
#include "stability/moments.hpp"
#include "stability/softmax.hpp"
#include "stability/study.hpp"

namespace rowtune::stability {

/// The dtype of the data and the type that sums are made in.
struct Precision {
  Dtype dtype;
  Dtype arithmetic;
  bool low_sums() const { return arithmetic == Dtype::f16 || arithmetic == Dtype::bf16; }
};
/// f64, f32; f16 and bf16 with f32 sums (the rounding of the input alone), then with sums in the low type as well.
const std::vector<Precision>& all_precisions();

/// What a cell says of all its results.
struct Tag {
  std::string experiment, test_case;
  std::string factor;
  std::optional<double> factor_value;
};

/// A value as it is stored in a tensor of the dtype.
double stored(Dtype dtype, Dtype arithmetic, double value);

/// Population variance by each method. n >= 1. `reference` of the row.
std::vector<Result> compare_variance(const Tag& tag, Dtype dtype, const ArithmeticChoice& arithmetic,
                                     const RowSource& row, const MomentsReference& reference,
                                     const std::vector<MomentsChoice>& choices);

/// softmax or log_softmax outputs, stored in the dtype, by each method; and log-sum-exp (unrounded by the dtype).
std::vector<Result> compare_softmax(const Tag& tag, Operation op, Dtype dtype, const ArithmeticChoice& arithmetic,
                                    const RowSource& row, const SoftmaxReference& reference,
                                    const std::vector<SoftmaxChoice>& choices);
std::vector<Result> compare_log_sum_exp(const Tag& tag, Dtype dtype, const ArithmeticChoice& arithmetic,
                                        const RowSource& row, const SoftmaxReference& reference,
                                        const std::vector<SoftmaxChoice>& choices);

/// layernorm or rmsnorm outputs, stored in the dtype.
std::vector<Result> compare_norm(const Tag& tag, Operation op, Dtype dtype, const ArithmeticChoice& arithmetic,
                                 double eps, const RowSource& row, const MomentsReference& reference,
                                 const std::vector<MomentsChoice>& choices);

/// Joins lists of results.
void append(std::vector<Result>& all, std::vector<Result> more);

}  // namespace rowtune::stability
