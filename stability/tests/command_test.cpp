#include "stability/command.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/errors.hpp"

namespace rowtune {
namespace {

std::string temporary(const std::string& name, const std::string& text) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("rowtune_command_" + std::to_string(::getpid()) + "_" + name))
          .string();
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

struct Streams {
  std::string out, err;
  int code;
};
Streams run(const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Streams s;
  try {
    s.code = stability_command(arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    throw;
  }
  s.out = testing::internal::GetCapturedStdout();
  s.err = testing::internal::GetCapturedStderr();
  return s;
}

TEST(Command, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(stability_command({"--nonsense"}), UsageError);
  EXPECT_THROW(stability_command({"positional"}), UsageError);
  EXPECT_THROW(stability_command({"--qui"}), UsageError);  // no guessing
  EXPECT_THROW(stability_command({"--seed", "x"}), UsageError);
  EXPECT_THROW(stability_command({"--input", "a", "--cases", "b"}), UsageError);
  EXPECT_THROW(stability_command({"--input", "a", "--dtype", "f8"}), UsageError);
  EXPECT_THROW(stability_command({"--input", "a", "--lanes", "100"}), UsageError);
  EXPECT_THROW(stability_command({"--dtype", "f16"}), UsageError);
  EXPECT_THROW(stability_command({"--cases", "b", "--format", "xml"}), UsageError);
}

TEST(Command, MissingFilesAreTheEnvironments) {
  EXPECT_THROW(stability_command({"--input", "/nonexistent/x.npy"}), EnvironmentError);
  EXPECT_THROW(stability_command({"--cases", "/nonexistent/x.json"}), EnvironmentError);
  EXPECT_THROW(stability_command({"--quick", "--out", "/proc/nothing", "--db", ""}), EnvironmentError);
  const std::string foreign = temporary("foreign.db", "not a database\n");
  EXPECT_THROW(stability_command({"--quick", "--db", foreign}), EnvironmentError);
}

TEST(Command, HelpNamesTheOptions) {
  const Streams s = run({"--help"});
  EXPECT_EQ(s.code, 0);
  for (const char* option : {"--out", "--quick", "--input", "--cases", "--db", "--seed"})
    EXPECT_NE(s.out.find(option), std::string::npos) << option;
}

TEST(Command, CasesExitByTheKernelsForms) {
  const std::string right = temporary(
      "right.json",
      R"([{"id": "a", "op": "variance", "dtype": "f32", "input": [["2281.5", 1], ["2281.25", 1]], "expect": {"var_pop": "0.015625"}}])");
  const Streams good = run({"--cases", right});
  EXPECT_EQ(good.code, 0);
  EXPECT_NE(good.out.find("WRONG"), std::string::npos);  // the one-pass form, and it does not fail the run
  EXPECT_NE(good.out.find("1 cases: 4 of 4 forms"), std::string::npos) << good.out;
  const std::string wrong = temporary(
      "wrong.json",
      R"([{"id": "a", "op": "variance", "dtype": "f32", "input": [["1", 1], ["2", 1]], "expect": {"var_pop": "0.3"}}])");
  EXPECT_EQ(run({"--cases", wrong}).code, 1);
  const Streams csv = run({"--cases", right, "--format", "csv", "--quiet"});
  EXPECT_EQ(csv.out.rfind("verdict,case,op", 0), 0u);
  const Streams json = run({"--cases", right, "--format", "json"});
  EXPECT_EQ(json.out.front(), '[');
}

TEST(Command, InputEndsWithAVerdict) {
  const std::string file = temporary("data.txt", "10000.1\n10000.2\n10000.3\n10000.4\n");
  const Streams s = run({"--input", file, "--dtype", "f32"});
  EXPECT_EQ(s.code, 0);
  EXPECT_NE(s.out.find("one_pass in f32 (sequential"), std::string::npos) << s.out;
  EXPECT_EQ(s.out.find('\r'), std::string::npos);
  const std::string out = temporary("dir", "") + ".d";
  EXPECT_EQ(run({"--input", file, "--out", out}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(out + "/input.csv"));
}

}  // namespace
}  // namespace rowtune
