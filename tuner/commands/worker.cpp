// rowtune worker: measures for the program that started it; see tuner/protocol.hpp.

#include "tuner/worker.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/compile_processes.hpp"

namespace rowtune {

int worker_command(const Arguments& arguments) {
  CommandLine line("worker", "worker [--device DEVICE]",
                   "Measures for another rowtune, which starts it and speaks to it over standard input and output. "
                   "There is no reason\nto start one by hand.");
  line.add_device("auto, cpu, or cuda:N");
  line.add("Options")("compile", boost::program_options::value<int>()->value_name("N"),
                      "compile for sm_N instead of measuring");
  if (!line.parse(arguments)) return exit_done;
  if (line.has("compile")) return serve_as_compiler(line.get<int>("compile"));
  return serve_as_worker(line.text("device"));
}

}  // namespace rowtune
