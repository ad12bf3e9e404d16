// rowtune baseline: other libraries' times, imported and compared with.

#include "tuner/baselines.hpp"

#include <fmt/format.h>

#include "db/database.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"

namespace rowtune {

int baseline_command(const Arguments& arguments) {
  namespace po = boost::program_options;
  CommandLine line("baseline", "baseline [FILE...] [--db FILE]",
                   "Imports the times of other libraries, measured for the same workloads on the same model of device, "
                   "and sets the\nfastest of them beside rowtune's winners. Without a file it only compares. A file "
                   "holds a JSON object a line;\ntuner/baselines/measure.py writes such files with PyTorch and what "
                   "else is installed.");
  line.add("Options")("from", po::value<std::vector<std::string>>()->value_name("FILE"),
                      "the files to import (the option's name may be left out)")(
      "op", po::value<std::string>()->value_name("OP"), "compare only this operation")(
      "dtype", po::value<std::string>()->value_name("DTYPE"), "compare only this dtype");
  line.take_words("from");
  line.add_database();
  line.add_format();
  line.add_quiet();
  line.add_example("python3 tuner/baselines/measure.py --shapes llm --out others.jsonl", "time the others");
  line.add_example("rowtune baseline others.jsonl", "import them and see who is faster where");
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const bool import = line.has("from");

  std::vector<db::Baseline> read;
  if (import)
    for (const std::string& file : line.get<std::vector<std::string>>("from"))
      for (db::Baseline& b : read_baselines(file)) read.push_back(std::move(b));
  db::Database database =
      db::Database::open(line.database(), import ? db::Database::Mode::read_write : db::Database::Mode::read_only);
  if (import) {
    database.record_baselines(read);
    if (!line.get<bool>("quiet")) tell(fmt::format("imported {} times into {}\n", read.size(), line.database()));
  }
  db::BestQuery query;
  if (line.has("op")) query.op = parse_operation(line.text("op"));
  if (line.has("dtype")) query.dtype = parse_dtype(line.text("dtype"));
  const std::vector<Standing> all = standings(database.baselines(query));
  if (all.empty() && !import)
    throw NotFoundError(
        fmt::format("{} holds no workload with both a winner and another library's time; import some "
                    "with rowtune baseline FILE, tune with rowtune tune",
                    line.database()));
  if (!all.empty() || format != Format::table) print(standings_sheet(all), format);
  if (!line.get<bool>("quiet")) tell(standings_words(all));
  return exit_done;
}

}  // namespace rowtune
