#pragma once
// `rowtune stability`: the study, the methods on the user's data, or cases with known answers.

#include <string>
#include <vector>

namespace rowtune {

/// argv[0] is the command's name, options follow. Results go to stdout, progress to stderr. Returns 0 when done, 1 when
/// a proven bound was exceeded or a method that the kernels use is wrong on a case. Throws UsageError (exit code 2) and
/// EnvironmentError (3).
int stability_command(int argc, const char* const* argv);
/// The same with the words behind the command's name.
int stability_command(const std::vector<std::string>& arguments);

}  // namespace rowtune
