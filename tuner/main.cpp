// The program: a table of commands, and what their exceptions mean as exit codes.

#include <fmt/format.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "kernels/errors.hpp"
#include "stability/command.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/identity.hpp"
#include "tuner/interrupt.hpp"

namespace {

using namespace rowtune;

struct Command {
  std::string name;
  std::string summary;  ///< empty: not for people
  int (*run)(const Arguments&);
};

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      {"devices", "what this machine offers, and why a device is unusable", devices_command},
      {"space", "the configs of an operation, and what each constraint removed", space_command},
      {"tune", "sweep, record, and print the winners", tune_command},
      {"best", "the best configs of what was tuned: times, intervals, ties", best_command},
      {"run", "one config again and again, checked and timed; for a profiler", run_command},
      {"dispatch", "write the table of winners, or look a shape up in it", dispatch_command},
      {"stability", "how wrong each method gets: the study, your data, or cases", stability_command},
      {"report", "what the database holds, as a page, Markdown or CSV", report_command},
      {"baseline", "import other libraries' times, and compare with them", baseline_command},
      {"verify", "time the stored winners again", verify_command},
      {"compare", "two databases side by side", compare_command},
      {"merge", "join databases into one", merge_command},
      {"replay", "search strategies on a space that was recorded in full", replay_command},
      {"worker", "", worker_command},
  };
  return table;
}

std::string help() {
  std::string text =
      "rowtune tunes the row reductions of Transformers (softmax, log-softmax, LayerNorm, RMSNorm, fused add + "
      "RMSNorm,\n"
      "argmax with log-sum-exp) for a device and its shapes, and studies their numerical stability.\n\n"
      "usage: rowtune COMMAND [options]\n\n";
  for (const Command& command : commands())
    if (!command.summary.empty()) text += fmt::format("  {:<11}{}\n", command.name, command.summary);
  text +=
      "\nTune your shapes and ship the table of winners:\n"
      "  rowtune tune --op softmax --dtype bf16 --shapes 4096x1000,64x50000 && rowtune dispatch --out table\n"
      "Ask which config wins, by how much and how surely:\n"
      "  rowtune best --op softmax --dtype bf16 --shape 4096x1000 --top 5\n"
      "See how wrong one-pass variance or unsafe softmax gets:\n"
      "  rowtune stability --quick --out study\n"
      "\nrowtune help COMMAND tells more. Without a GPU everything works on the cpu device.\n";
  return text;
}

int run_command_line(const std::vector<std::string>& words) {
  if (words.empty()) {
    print(help());
    return exit_usage;
  }
  if (words[0] == "--version") {
    print(fmt::format("rowtune {}\n", rowtune_version()));
    return exit_done;
  }
  const bool help_wanted = words[0] == "help" || words[0] == "--help" || words[0] == "-h";
  if (help_wanted && words.size() == 1) {
    print(help());
    return exit_done;
  }
  const std::string& name = words[help_wanted ? 1 : 0];
  for (const Command& command : commands())
    if (command.name == name)
      return command.run(help_wanted ? Arguments{"--help"} : Arguments(words.begin() + 1, words.end()));

  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  const std::string meant = nearest(name, names);
  throw UsageError(fmt::format("there is no command '{}'{}; rowtune help lists them", name,
                               meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
}

/// The threads of the cpu device wait for each other at the end of each launch. libgomp spins for milliseconds before
/// it sleeps, which on a machine with something else to do costs a time slice a launch: 256x1000 took 11.8 ms instead
/// of 0.4 on two busy cores. Its limit is read before main, so the program starts itself again with a shorter one
/// (about 0.3 ms, far more than a launch needs where the cores are free), unless somebody chose for themselves.
void shorten_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  if (setenv("GOMP_SPINCOUNT", "10000", 0) == 0) execv("/proc/self/exe", argv);
}

/// Buffers of half a gigabyte come and go with every workload on the cpu device; handing their pages back and taking
/// them again cost up to a third of the time of a sweep (10 workloads, no finals: 17.5 s, now 12.5).
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace

int main(int argc, char** argv) {
  shorten_spinning(argv);
  prepare_standard_streams();
  keep_freed_memory();
  const auto failed = [](const std::exception& error, int code) {
    tell(fmt::format("rowtune: {}\n", error.what()));
    return code;
  };
  try {
    const int code = run_command_line({argv + std::min(argc, 1), argv + argc});
    // What a command left in a buffer counts as printed only once it has arrived.
    if (std::fflush(stdout) != 0 || !std::cout.flush())
      throw EnvironmentError("cannot write the results to standard output");
    return code;
  } catch (const UsageError& error) {
    return failed(error, exit_usage);
  } catch (const EnvironmentError& error) {
    return failed(error, exit_environment);
  } catch (const std::exception& error) {  // NotFoundError and ConfigFailure among them
    return failed(error, exit_failed);
  }
}
