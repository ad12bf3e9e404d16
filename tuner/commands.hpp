#pragma once
// The commands that live in tuner/commands/. Each takes the words behind its name and returns an exit code; what it
// throws, main turns into one.

#include <string>
#include <vector>

namespace rowtune {

using Arguments = std::vector<std::string>;

int devices_command(const Arguments& arguments);
int space_command(const Arguments& arguments);
int tune_command(const Arguments& arguments);
int best_command(const Arguments& arguments);
int run_command(const Arguments& arguments);
int dispatch_command(const Arguments& arguments);
int report_command(const Arguments& arguments);
int replay_command(const Arguments& arguments);
int worker_command(const Arguments& arguments);  ///< started by tune and verify, not by people
int merge_command(const Arguments& arguments);
int baseline_command(const Arguments& arguments);
int verify_command(const Arguments& arguments);
int compare_command(const Arguments& arguments);

}  // namespace rowtune
