#pragma once
// The certified and public data that the program carries with it (stability/data, embedded when it is built).

#include <string>
#include <string_view>
#include <vector>

#include "kernels/words.hpp"

namespace rowtune::stability {

/// One of NIST's StRD univariate sets: the data as published, and the certified statistics to 20 digits.
struct CertifiedSet {
  std::string name;
  std::vector<std::string> values;  ///< decimal strings
  std::string mean, sample_sd;      ///< to 20 significant digits
};
const std::vector<CertifiedSet>& certified_sets();

/// The rounded data; infinite where a value does not fit the dtype.
std::vector<double> rounded_values(const CertifiedSet& set, Dtype dtype);

/// 2,500 rows of 10 logits of a classifier (LeNet on MNIST), as decimal strings.
const std::vector<std::vector<std::string>>& public_logits();

/// The public cases with known answers, as JSON text (see cases.hpp).
std::string_view public_cases();

}  // namespace rowtune::stability
