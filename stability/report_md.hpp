#pragma once
// stability.md: the study as a person reads it from top to bottom. The sections are functions so that files stay
// short; all of them only read results.

#include <string>
#include <vector>

#include "stability/findings.hpp"
#include "stability/table.hpp"

namespace rowtune::stability {

std::string markdown_report(const std::vector<Result>& results, const StudyFacts& facts);

/// The findings in short, a sentence a line: also what the command prints.
std::vector<std::string> findings_in_words(const std::vector<Result>& results, const StudyFacts& facts);

std::string markdown_variance(const std::vector<Result>& results);
std::string markdown_softmax(const std::vector<Result>& results);
std::string markdown_data(const std::vector<Result>& results);

/// Error as two significant digits; NaN, inf and negative variances by name; empty when there is none.
std::string show_error(const Result* result);
/// Rows of methods and orders in one precision, a column for each case of an experiment.
Table error_table(const std::vector<Result>& results, const std::string& experiment, const std::string& op, Dtype dtype,
                  Dtype arithmetic, const std::vector<std::string>& only_cases = {});
/// A column for each precision: the factor's value at the first failure (in `format`) and how it failed.
Table failure_table(const std::vector<FirstFailure>& failures, const std::string& format);

}  // namespace rowtune::stability
