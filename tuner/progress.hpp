#pragma once
// The progress of a tune on standard error: one line that rewrites itself on a terminal, plain lines otherwise.

#include <string>

#include "tuner/tune.hpp"

namespace rowtune {

class ConsoleProgress : public TuneObserver {
 public:
  /// `quiet`: warnings only.
  ConsoleProgress(bool quiet, bool terminal, Clock now = steady_seconds);
  ~ConsoleProgress() override;

  void compiling(std::size_t done, std::size_t total) override;
  void measured(const TuneStatus& status, const db::Measurement& m) override;
  void final_begins(const TuneStatus& status, std::size_t finalists) override;
  void warning(const std::string& text) override;
  /// Takes the line off the terminal.
  void clear();

  /// `137/620  22 %  softmax bf16 256x1000 cold  best 12.3 us warp.b128...  2 min left`, at most `width` wide.
  static std::string line(const TuneStatus& status, const std::string& note, std::size_t width);

 private:
  void show(const std::string& text);

  bool quiet_, terminal_;
  Clock now_;
  double last_shown_;
  bool line_is_up_ = false;
};

}  // namespace rowtune
