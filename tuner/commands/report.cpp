// rowtune report: what the database holds, for people.

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "db/database.hpp"
#include "reports/report.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;

/// By the option, else by the ending of the file's name, else Markdown.
std::string format_from(const CommandLine& line) {
  if (line.has("format")) return line.text("format");
  if (line.has("out")) {
    const std::string out = line.text("out");
    for (const char* ending : {"html", "csv", "md"})
      if (out.ends_with(fmt::format(".{}", ending))) return ending;
  }
  return "md";
}

std::string write_report(const db::Database& database, const std::string& format) {
  std::ostringstream text;
  if (format == "md")
    reports::write_markdown(database, text);
  else if (format == "csv")
    reports::write_csv(database, text);
  else if (format == "html")
    reports::write_html(database, text);
  else
    throw UsageError(fmt::format("rowtune report: unknown format '{}'; choose from html, md, csv", format));
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw EnvironmentError(fmt::format("cannot write the report to {}: {}", path, std::strerror(errno)));
}

}  // namespace

int report_command(const Arguments& arguments) {
  CommandLine line(
      "report", "report [--format md|csv|html] [--out FILE]",
      "Writes what the database holds: the winners, failures by reason, coverage, and what to be careful with "
      "(html, md),\nor every measured config (csv). Without --out it goes to standard output.");
  line.add("Options")("format", po::value<std::string>()->value_name("FORMAT"),
                      "html, md or csv; without it, by the ending of --out, else md")(
      "out", po::value<std::string>()->value_name("FILE"), "the file to write");
  line.add_database();
  line.add_quiet();
  line.add_example("rowtune report --out report.html", "one page that needs nothing else");
  line.add_example("rowtune report --format csv", "every config of every workload");
  if (!line.parse(arguments)) return exit_done;
  const db::Database database = db::Database::open(line.database(), db::Database::Mode::read_only);
  const std::string text = write_report(database, format_from(line));
  if (!line.has("out")) {
    print(text);
  } else {
    write_file(line.text("out"), text);
    if (!line.get<bool>("quiet")) tell(fmt::format("{} written\n", line.text("out")));
  }
  return exit_done;
}

}  // namespace rowtune
