#pragma once
// Runs the built program in a folder of the test's own.

#include <gtest/gtest.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "db/database.hpp"
#include "kernels/errors.hpp"

namespace rowtune {

namespace fs = std::filesystem;

inline std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Result {
  int code = -1;  ///< 128 + signal when it died of one
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("rowtune-cli-" + std::to_string(getpid()) + "-" +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// The words go through a shell, so that redirections are part of a test.
  /// `powerless`: as a user who may not write here, where the tests run as root (who may write everything).
  pid_t start(const std::string& words, bool powerless = false) {
    const pid_t child = fork();
    if (child != 0) return child;
    if (chdir(folder_.c_str()) != 0) _exit(126);
    if (powerless && geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(126);
    // One processor, one thread: on a busy machine the threads of a kernel wait for each other for milliseconds a
    // launch.
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
      if (CPU_ISSET(i, &allowed)) CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    const std::string line = "exec " ROWTUNE_PROGRAM " " + words;
    const std::string whole = words.find('>') == std::string::npos ? line + " >out 2>err </dev/null" : line;
    execl("/bin/sh", "sh", "-c", whole.c_str(), nullptr);
    _exit(127);
  }
  Result finish(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(folder_ / "out"),
            read_file(folder_ / "err")};
  }
  Result run(const std::string& words) { return finish(start(words)); }
  Result run_powerless(const std::string& words) {
    for (const char* name : {"out", "err"}) {  // the shell opens them as that user
      std::ofstream(folder_ / name).close();
      fs::permissions(folder_ / name, fs::perms::all);
    }
    return finish(start(words, true));
  }

  std::int64_t measurements(const std::string& name) {
    try {
      return db::Database::open((folder_ / name).string(), db::Database::Mode::read_only).measurement_count();
    } catch (const EnvironmentError&) {
      return 0;  // not there yet
    }
  }
  bool wait_for_measurements(const std::string& name, std::int64_t count) {
    for (int i = 0; i < 3000; ++i) {
      if (measurements(name) >= count) return true;
      usleep(10000);
    }
    return false;
  }
  std::string integrity(const std::string& name) {
    sqlite3* db = nullptr;
    std::string answer = "did not open";
    if (sqlite3_open((folder_ / name).c_str(), &db) == SQLITE_OK)
      sqlite3_exec(
          db, "PRAGMA integrity_check",
          [](void* to, int, char** values, char**) {
            *static_cast<std::string*>(to) = values[0];
            return 0;
          },
          &answer, nullptr);
    sqlite3_close(db);
    return answer;
  }

  fs::path folder_;
};

/// Small and warm: no gigabytes of buffers in a test.
inline const std::string small_tune =
    "tune --device cpu --op softmax --dtype f32 --shapes 4x64 --regime warm --budget 20s";
inline const std::string longer_tune =
    "tune --device cpu --op softmax --dtype all --shapes 16x64,16x128,32x256 --regime warm";

}  // namespace rowtune
