// rowtune merge: joins databases into one.

#include <fmt/format.h>

#include <filesystem>

#include "db/database.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"

namespace rowtune {

int merge_command(const Arguments& arguments) {
  CommandLine line(
      "merge", "merge FILE... [--db FILE]",
      "Joins the measurements of other databases into --db, which is created if missing. What is there already "
      "stays;\ndoing it again changes nothing. Results of different device models keep apart.");
  line.add("Options")("from", boost::program_options::value<std::vector<std::string>>()->value_name("FILE"),
                      "the files to read (the option's name may be left out)")(
      "contenders", boost::program_options::value<int>()->value_name("N"),
      "then make --db small for sharing: drop samples, and configs that are nowhere among the N fastest of their\n"
      "operation and dtype, nor tied, nor the base; --db must be a new file");
  line.take_words("from");
  line.add_database();
  line.add_quiet();
  line.add_example("rowtune merge a.db b.db --db all.db", "one file of the results of two machines");
  line.add_example("rowtune merge a.db --db sample.db --contenders 4", "a small file with the same winners");
  if (!line.parse(arguments)) return exit_done;
  if (!line.has("from")) throw UsageError("rowtune merge: name the files to join; see: rowtune help merge");
  const bool small = line.has("contenders");
  if (small && line.get<int>("contenders") < 1) throw UsageError("rowtune merge: --contenders is at least 1");
  if (small && std::filesystem::exists(line.database()))
    throw UsageError(
        fmt::format("rowtune merge: --contenders drops measurements, and {} is there already; name a new "
                    "file with --db",
                    line.database()));
  const auto files = line.get<std::vector<std::string>>("from");
  for (const std::string& file : files)  // a bad one is found before anything is written
    db::Database::open(file, db::Database::Mode::read_only);
  db::Database database = db::Database::open(line.database(), db::Database::Mode::read_write);
  for (const std::string& file : files) {
    const db::MergeCounts counts = database.merge_from(file);
    if (!line.get<bool>("quiet"))
      print(
          fmt::format("{}: {} measurements new, {} there already; {} decisions, {} energies, {} accuracies, {} "
                      "baselines, {} runs of "
                      "the stability study\n",
                      file, counts.measurements, counts.measurements_present, counts.decisions, counts.energies,
                      counts.accuracies, counts.baselines, counts.stability_runs));
  }
  if (small) {
    const auto dropped = database.prune(line.get<int>("contenders"));
    if (!line.get<bool>("quiet"))
      print(fmt::format("{}: {} measurements dropped, {} kept\n", line.database(), dropped,
                        database.measurement_count()));
  }
  return exit_done;
}

}  // namespace rowtune
