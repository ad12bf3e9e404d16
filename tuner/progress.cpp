#include "tuner/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tuner/cli.hpp"

namespace rowtune {
namespace {

constexpr double seconds_between_redraws = 0.1;
constexpr double seconds_between_lines = 5;

}  // namespace

ConsoleProgress::ConsoleProgress(bool quiet, bool terminal, Clock now)
    : quiet_(quiet), terminal_(terminal), now_(std::move(now)), last_shown_(now_()) {}

ConsoleProgress::~ConsoleProgress() { clear(); }

std::string ConsoleProgress::line(const TuneStatus& status, const std::string& note, std::size_t width) {
  const std::size_t percent = status.total == 0 ? 100 : 100 * status.done / status.total;
  std::string text =
      fmt::format("{}/{}  {} %  {} left", status.done, status.total, percent, format_duration(status.seconds_left));
  if (status.workload) text += "  " + to_string(*status.workload);
  if (!note.empty())
    text += "  " + note;
  else if (status.leader)
    text += fmt::format("  best {} us {}", format_us(status.leader->time_us), status.leader->config.name());
  if (text.size() > width) text.resize(width);
  return text;
}

void ConsoleProgress::compiling(std::size_t done, std::size_t total) {
  show(fmt::format("compiling {}/{}", done, total));
}

void ConsoleProgress::measured(const TuneStatus& status, const db::Measurement&) {
  show(line(status, "", static_cast<std::size_t>(terminal_width()) - 1));
}

void ConsoleProgress::final_begins(const TuneStatus& status, std::size_t finalists) {
  show(line(status, fmt::format("final of {}", finalists), static_cast<std::size_t>(terminal_width()) - 1));
}

void ConsoleProgress::warning(const std::string& text) {
  clear();
  const bool styled = terminal_ && may_be_styled(STDERR_FILENO);
  tell((styled ? "\x1b[33mrowtune: warning:\x1b[0m " : "rowtune: warning: ") + text + "\n");
}

void ConsoleProgress::show(const std::string& text) {
  if (quiet_) return;
  const double now = now_();
  if (now - last_shown_ < (terminal_ ? seconds_between_redraws : seconds_between_lines)) return;
  last_shown_ = now;
  if (terminal_) {
    tell("\r\x1b[K" + text);
    line_is_up_ = true;
  } else {
    tell(text + "\n");
  }
}

void ConsoleProgress::clear() {
  if (line_is_up_) tell("\r\x1b[K");
  line_is_up_ = false;
}

}  // namespace rowtune
