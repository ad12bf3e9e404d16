#include "tuner/worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "kernels/errors.hpp"

namespace rowtune {
namespace {

constexpr double seconds_to_leave = 2;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void close_once(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command) {
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
    for (int* end : {&in[0], &in[1]}) close_once(*end);
    throw EnvironmentError(fmt::format("cannot make the pipes of a worker: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t defaults, none;
  sigemptyset(&defaults);
  sigemptyset(&none);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &none);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int error = posix_spawnp(&pid_, words[0], &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (error != 0) {
    close_once(to_);
    close_once(from_);
    throw EnvironmentError(fmt::format("cannot start a worker with '{}': {}", command.front(), std::strerror(error)));
  }
}

WorkerProcess::~WorkerProcess() {
  close_once(to_);
  const double deadline = now() + seconds_to_leave;
  while (!status_ && now() < deadline) {
    reap(WNOHANG);
    if (!status_) usleep(1000);
  }
  end();
  close_once(from_);
}

void WorkerProcess::reap(int options) {
  if (status_) return;
  int status = 0;
  pid_t got = -1;
  do got = waitpid(pid_, &status, options);
  while (got < 0 && errno == EINTR);
  if (got == pid_) status_ = status;
  if (got < 0) status_ = 0;
}

void WorkerProcess::end() {
  if (!status_) kill(-pid_, SIGKILL);  // a launcher and what it started
  reap(0);
}

std::string WorkerProcess::obituary() {
  const double deadline = now() + 0.5;  // its output closes a little before it can be waited for
  while (!status_ && now() < deadline) {
    reap(WNOHANG);
    if (!status_) usleep(1000);
  }
  if (!status_) {
    end();
    return "closed its output and had to be killed";
  }
  if (WIFSIGNALED(*status_))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(*status_), strsignal(WTERMSIG(*status_)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(*status_));
}

bool WorkerProcess::send(const std::string& line) {
  const std::string text = line + '\n';
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(to_, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

WorkerProcess::Reading WorkerProcess::read_line(std::string& line, double seconds) {
  const double deadline = now() + seconds;
  while (true) {
    const std::size_t newline = unread_.find('\n');
    if (newline != std::string::npos) {
      line = unread_.substr(0, newline);
      unread_.erase(0, newline + 1);
      return Reading::line;
    }
    const double left = deadline - now();
    if (left <= 0) return Reading::timeout;
    pollfd ready{from_, POLLIN, 0};
    const int n = poll(&ready, 1, static_cast<int>(left * 1000) + 1);
    if (n < 0 && errno != EINTR) return Reading::closed;
    if (n <= 0) continue;
    char buffer[65536];
    const ssize_t got = read(from_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Reading::closed;
    unread_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words;
  bool open = false;
  char quote = 0;
  for (char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        words.back() += c;
    } else if (c == ' ' || c == '\t') {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      if (c == '"' || c == '\'')
        quote = c;
      else
        words.back() += c;
    }
  }
  if (quote != 0) throw UsageError(fmt::format("the launcher '{}' has a quote that is not closed", text));
  return words;
}

std::string own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw EnvironmentError(fmt::format("cannot find this program in /proc: {}", error.message()));
  return path.string();
}

}  // namespace rowtune
