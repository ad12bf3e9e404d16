// The built program from outside: exit codes, sentences, and what a signal leaves behind.

#include "tuner/tests/cli_fixture.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/words.hpp"

namespace rowtune {
namespace {

struct Refusal {
  std::string name, words;
  int code;
  std::vector<std::string> says;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.words; }

class Refusals : public Cli, public testing::WithParamInterface<Refusal> {};

TEST_P(Refusals, ExitCodeAndASentence) {
  const Result result = run(GetParam().words);
  EXPECT_EQ(result.code, GetParam().code) << result.err;
  EXPECT_EQ(result.out, "");
  for (const std::string& word : GetParam().says)
    EXPECT_NE(result.err.find(word), std::string::npos) << "'" << word << "' is not in: " << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Cli, Refusals,
    testing::Values(
        Refusal{"WrongFlag", "tune --nonsense", 2, {"--nonsense", "help tune"}},
        Refusal{"MisspeltFlag", "tune --shape 4x4", 2, {"did you mean --shapes"}},
        Refusal{"AbbreviatedFlag", "best --dty f32", 2, {"--dty"}}, Refusal{"FlagWithoutValue", "best --op", 2, {"op"}},
        Refusal{"StrayWord", "tune softmax", 2, {"softmax"}},
        Refusal{"UnknownStrategyToReplay", "replay --strategy clever", 2, {"clever", "auto"}},
        Refusal{"WorkersWithoutLauncher", "tune --workers 2 --device cpu", 2, {"--launcher"}},
        Refusal{"UnknownObjective", "tune --objective money", 2, {"money", "energy"}},
        Refusal{"UnknownCommand", "tuna", 2, {"tuna", "did you mean tune"}},
        Refusal{"UnknownOperation", "best --op nope --dtype f32 --shape 4x4", 2, {"nope", "rmsnorm"}},
        Refusal{"UnknownDtype", "tune --dtype f8", 2, {"f8", "bf16"}},
        Refusal{"UnknownRegime", "tune --regime hot", 2, {"hot", "overlapped"}},
        Refusal{"UnknownStrategy", "tune --strategy clever", 2, {"clever", "exhaustive"}},
        Refusal{"UnknownFormat", "devices --format xml", 2, {"xml", "csv"}},
        Refusal{"UnknownDevice", "tune --device tpu", 2, {"tpu", "cuda:N"}},
        Refusal{"NegativeShape", "space --op softmax --dtype f32 --shape 0x-3", 2, {"0x-3", "-3"}},
        Refusal{"NegativeShapes", "tune --shapes 0x-3", 2, {"0x-3"}},
        Refusal{"EmptyShape", "tune --shapes 0x5", 2, {"nothing to time"}},
        Refusal{"UnknownPreset", "tune --shapes quik", 2, {"quik", "llm"}},
        Refusal{"BadBudget", "tune --budget soon", 2, {"soon", "10m"}}, Refusal{"BadTop", "best --top 0", 2, {"--top"}},
        Refusal{"BadTopWord", "best --top many", 2, {"many"}},
        Refusal{"MissingOption", "run --op softmax --dtype f32 --shape 4x4", 2, {"--config", "help run"}},
        Refusal{"UnknownConfig",
                "run --device cpu --op softmax --dtype f32 --shape 4x4 --config nonsense.b1",
                2,
                {"nonsense"}},
        Refusal{"NeitherOutNorLookup", "dispatch", 2, {"--out", "--lookup"}},
        Refusal{"RefineWithoutDevice", "dispatch --refine", 2, {"--device", "--refine"}},
        Refusal{"RefineAndOut", "dispatch --refine --device cpu --out d", 2, {"--refine", "--out"}},
        Refusal{"RefineATable", "dispatch --refine --device cpu --table t.json", 2, {"--table"}},
        Refusal{"NoPlaces", "dispatch --refine --device cpu --places 0", 2, {"--places"}},
        Refusal{"RefineWithoutDatabase", "dispatch --refine --device cpu --db nowhere/x.db", 3, {"nowhere"}},
        Refusal{"RefineOnAnotherDevice",
                "dispatch --refine --device cpu --db " ROWTUNE_SAMPLE,
                1,
                {"H200", "nothing for", "rowtune tune"}},
        Refusal{"MissingDatabase", "best --db nowhere/x.db", 3, {"nowhere/x.db"}},
        Refusal{"PlaceThatCannotBeWritten", small_tune + " --db /proc/rowtune.db", 3, {"/proc/rowtune.db"}},
        Refusal{"UnreadableReportPath", "report --db nowhere.db --out r.md", 3, {"nowhere.db"}}),
    [](const auto& refusal) { return refusal.param.name; });

TEST_F(Cli, HelpTeachesTheThreeJobs) {
  const Result alone = run(""), asked = run("--help");
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(asked.code, 0);
  for (const Result& result : {alone, asked})
    for (const char* command : {"rowtune tune --op", "rowtune best --op", "rowtune stability", "dispatch", "report"})
      EXPECT_NE(result.out.find(command), std::string::npos) << command;
}

TEST_F(Cli, EveryCommandListedHasHelp) {
  for (const char* command :
       {"devices", "space", "tune", "best", "run", "dispatch", "stability", "report", "compare", "merge"}) {
    const Result a = run(std::string("help ") + command), b = run(std::string(command) + " --help");
    EXPECT_EQ(a.code, 0) << command;
    EXPECT_EQ(b.code, 0) << command;
    EXPECT_GT(a.out.size(), 200u) << command;
    EXPECT_EQ(a.out, b.out) << command;
  }
}

TEST_F(Cli, AGpuThatIsNotThereIsSaidToBeSo) {
  if (fs::exists("/dev/nvidia0")) GTEST_SKIP() << "there is a GPU";
  const Result result = run("tune --device cuda:0 --op softmax --shapes 4x64 --db t.db");
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.err.find("cuda:0"), std::string::npos);
  EXPECT_NE(result.err.find("cpu"), std::string::npos);  // what works instead
  EXPECT_FALSE(fs::exists(folder_ / "t.db"));            // nothing is left behind
}

TEST_F(Cli, OutputThatCannotBeWrittenIsAnError) {
  for (const char* to : {">/dev/full", ">&-"}) {
    const Result result = run(std::string("devices 2>err ") + to);
    EXPECT_EQ(result.code, 3) << to;
    EXPECT_NE(result.err.find("standard output"), std::string::npos) << to << result.err;
  }
}

TEST_F(Cli, AReaderThatLeavesIsNoSuddenDeath) {
  // The shell's exec would replace the pipeline, hence the inner shell.
  std::ofstream(folder_ / "pipe.sh") << "(" ROWTUNE_PROGRAM
                                        " space --device cpu --op softmax --dtype f32 --shape 64x1000 "
                                        "--format json; echo $? >code) 2>err | true\n";
  ASSERT_EQ(std::system(("cd " + folder_.string() + " && sleep 0.1 | sh pipe.sh").c_str()), 0);
  const std::string code = read_file(folder_ / "code");
  EXPECT_TRUE(code == "3\n" || code == "0\n") << code;  // 0: it was quicker than the reader
}

TEST_F(Cli, ADatabaseOfSomebodyElseIsLeftAlone) {
  const Result made = run(small_tune + " --db theirs.db --quiet");
  ASSERT_EQ(made.code, 0) << made.err;
  {
    std::fstream file(folder_ / "theirs.db", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(68);  // application_id, of the file format of SQLite
    file.write("ABCD", 4);
  }
  std::ofstream(folder_ / "text.db") << std::string(3000, 'x');
  for (const char* name : {"theirs.db", "text.db"}) {
    const std::string before = read_file(folder_ / name);
    const Result result = run(small_tune + " --db " + name);
    EXPECT_EQ(result.code, 3) << name;
    EXPECT_NE(result.err.find(name), std::string::npos) << result.err;
    EXPECT_EQ(read_file(folder_ / name), before) << name;
  }
}

TEST_F(Cli, AReadOnlyDatabaseIsRefusedForTuningAndFineForReading) {
  ASSERT_EQ(run(small_tune + " --db t.db --quiet").code, 0);
  fs::permissions(folder_ / "t.db", fs::perms::owner_read | fs::perms::others_read);
  fs::permissions(folder_,
                  fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  const std::string before = read_file(folder_ / "t.db");
  const Result tuned = run_powerless(small_tune + " --db t.db");
  if (tuned.code == 126 || tuned.code == 127) GTEST_SKIP() << "another user cannot run the program where it was built";
  EXPECT_EQ(tuned.code, 3);
  EXPECT_NE(tuned.err.find("t.db"), std::string::npos) << tuned.err;
  EXPECT_EQ(read_file(folder_ / "t.db"), before);
  const Result refined = run_powerless("dispatch --refine --device cpu --regime warm --db t.db");
  EXPECT_EQ(refined.code, 3);
  EXPECT_NE(refined.err.find("t.db"), std::string::npos) << refined.err;
  EXPECT_EQ(read_file(folder_ / "t.db"), before);
  const Result best = run_powerless("best --regime all --db t.db");
  EXPECT_EQ(best.code, 0) << best.err;
  fs::permissions(folder_, fs::perms::all);
}

TEST_F(Cli, NothingTunedIsNotFound) {
  ASSERT_EQ(run(small_tune + " --db t.db --quiet").code, 0);
  const Result result = run("best --op softmax --dtype f16 --shape 3x5 --db t.db");
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("rowtune tune --op softmax --dtype f16 --shapes 3x5"), std::string::npos) << result.err;
}

TEST_F(Cli, TuneBestRunAndDispatchAgree) {
  const Result tuned = run(small_tune + " --db t.db");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(tuned.out.find('\r'), std::string::npos);
  const Result best = run("best --regime warm --op softmax --db t.db --format csv");
  ASSERT_EQ(best.code, 0) << best.err;
  const auto rows = db::Database::open((folder_ / "t.db").string(), db::Database::Mode::read_only).best([] {
    db::BestQuery query;
    query.op = Operation::softmax;
    return query;
  }());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NE(best.out.find(rows[0].config), std::string::npos);
  const Result ran =
      run("run --device cpu --op softmax --dtype f32 --shape 4x64 --regime warm --config " + rows[0].config);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Result launched = run("run --device cpu --op softmax --dtype f32 --shape 4x64 --config base --launches 3");
  EXPECT_EQ(launched.code, 0) << launched.err;
  const Result looked = run("dispatch --regime warm --op softmax --dtype f32 --lookup 5x64 --db t.db");
  EXPECT_EQ(looked.code, 0) << looked.err;
  EXPECT_NE(looked.out.find("near"), std::string::npos);
}

TEST_F(Cli, TheSampleGivesTheSameTablesTwiceWithoutAGpuInSeconds) {
  const auto seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double before = seconds();
  const Result once = run("dispatch --db " ROWTUNE_SAMPLE " --out a");
  [[maybe_unused]] const double spent =
      seconds() - before;  // of the processor: the machine may be busy with other things
  ASSERT_EQ(once.code, 0) << once.err;
  ASSERT_EQ(run("dispatch --db " ROWTUNE_SAMPLE " --out b").code, 0);
  for (const char* name : {"dispatch.json", "rowtune_dispatch.cuh"}) {
    EXPECT_GT(read_file(folder_ / "a" / name).size(), 10000u) << name;
    EXPECT_EQ(read_file(folder_ / "a" / name), read_file(folder_ / "b" / name)) << name;
  }
#if (defined(NDEBUG) || defined(__OPTIMIZE__)) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(spent, 5.0);  // 2 on all cores together: a second on two
#endif
}

TEST_F(Cli, ATableAnswersClearlyWhatItDoesNotHave) {
  ASSERT_EQ(run("dispatch --db " ROWTUNE_SAMPLE " --op softmax --dtype bf16 --out t").code, 0);
  const std::string ask = "dispatch --table t/dispatch.json --op softmax --dtype bf16 --lookup 64x32000";
  EXPECT_EQ(run(ask).code, 0);
  const Result other = run(ask + " --device-model 'Other GPU'");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.out.find("nothing here is for 'Other GPU'"), std::string::npos) << other.out;
  EXPECT_NE(other.out.find("H200"), std::string::npos) << "says for which";
  const Result untuned = run("dispatch --table t/dispatch.json --op rmsnorm --dtype bf16 --lookup 64x32000");
  EXPECT_EQ(untuned.code, 1);
  EXPECT_NE(untuned.out.find("not tuned"), std::string::npos) << untuned.out;
  const Result far = run("dispatch --table t/dispatch.json --op softmax --dtype bf16 --lookup 2000000000x2000000000");
  EXPECT_EQ(far.code, 0);
  EXPECT_NE(far.out.find("out of range"), std::string::npos) << far.out;

  const std::string whole = read_file(folder_ / "t" / "dispatch.json");
  std::ofstream(folder_ / "cut.json") << whole.substr(0, whole.size() / 2);
  const Result cut = run("dispatch --table cut.json --op softmax --dtype bf16 --lookup 64x32000");
  EXPECT_EQ(cut.code, 3);
  EXPECT_NE(cut.err.find("cut short"), std::string::npos) << cut.err;

  db::Database::open((folder_ / "empty.db").string(), db::Database::Mode::read_write);
  for (const char* what : {"--out e", "--evaluate"}) {
    const Result empty = run(std::string("dispatch --db empty.db ") + what);
    EXPECT_EQ(empty.code, 1) << what;
    EXPECT_NE(empty.err.find("empty.db"), std::string::npos) << empty.err;
  }
  EXPECT_FALSE(fs::exists(folder_ / "e"));
}

TEST_F(Cli, EvaluatesTheSampleByLeavingShapesOut) {
  const Result result = run("dispatch --evaluate --db " ROWTUNE_SAMPLE " --op softmax --dtype bf16 --format csv");
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* word : {"regret", "place", "between", "beyond"})
    EXPECT_NE(result.out.find(word), std::string::npos) << word << "\n" << result.out;
  EXPECT_GT(std::count(result.out.begin(), result.out.end(), '\n'), 10) << result.out;
}

TEST_F(Cli, RefineMeasuresOffTheGridOnceAndLeavesTheRestAlone) {
  ASSERT_EQ(run(small_tune + " --db t.db --quiet").code, 0);
  const std::int64_t tuned = measurements("t.db");
  const std::string refine = "dispatch --refine --device cpu --regime warm --places 4 --budget 20s --db t.db";
  const Result first = run(refine + " --format json");
  ASSERT_EQ(first.code, 0) << first.err;
  const std::int64_t refined = measurements("t.db");
  EXPECT_GT(refined, tuned);
  EXPECT_NE(first.err.find("softmax f32, round 1: "), std::string::npos) << first.err;
  const auto table = nlohmann::json::parse(first.out).at(0);
  for (const char* key : {"op", "dtype", "shapes", "measured", "changed", "old_p95", "new_p95"})
    EXPECT_TRUE(table.contains(key)) << key;
  EXPECT_EQ(table.at("shapes"), 4);

  const Result again = run(refine);
  EXPECT_EQ(again.code, 0) << again.err;
  if (first.err.find("the budget is spent") == std::string::npos) {
    EXPECT_EQ(measurements("t.db"), refined) << again.err;
    EXPECT_NE(again.err.find("0 results"), std::string::npos) << again.err;
  }
  const Result verified = run("verify --device cpu --regime warm --db t.db --margin 0.5");
  EXPECT_NE(verified.err.find("2 winners timed again"), std::string::npos) << verified.err;
  const Result table_written = run("dispatch --regime warm --db t.db --out d");
  EXPECT_NE(table_written.out.find("1 shapes"), std::string::npos) << table_written.out;
}

TEST_F(Cli, RefineThatIsInterruptedSavesWhatItHas) {
  ASSERT_EQ(run(small_tune + " --db t.db --quiet").code, 0);
  const std::int64_t tuned = measurements("t.db");
  const pid_t child = start("dispatch --refine --device cpu --regime warm --db t.db");
  ASSERT_TRUE(wait_for_measurements("t.db", tuned + 3));
  kill(child, SIGINT);
  const Result result = finish(child);
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_NE(result.err.find("saved in t.db"), std::string::npos) << result.err;
  EXPECT_GE(measurements("t.db"), tuned + 3);
  EXPECT_EQ(integrity("t.db"), "ok");
}

TEST_F(Cli, VerifyTimesTheWinnersAgainAndCompareSaysHowTwoTunesAgree) {
  ASSERT_EQ(run(small_tune + " --db a.db --quiet").code, 0);
  fs::copy_file(folder_ / "a.db", folder_ / "b.db");
  const Result verified = run("verify --device cpu --regime warm --db a.db --format csv --margin 0.5");
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_NE(verified.out.find("against_stored"), std::string::npos) << verified.out;
  EXPECT_NE(verified.err.find("2 winners timed again"), std::string::npos) << verified.err;
  const Result compared = run("compare a.db b.db --format csv --fail-on-regression");
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_NE(compared.err.find("2 of 2 winners of A (100.0 %) are among the ties of B"), std::string::npos)
      << compared.err;
  EXPECT_EQ(run("best --objective energy --regime all --db a.db").code, 1) << "a cpu tells no energy";
}

TEST_F(Cli, CompareShowsTheOthersBeside) {
  const Result result = run("compare " ROWTUNE_SAMPLE " " ROWTUNE_SAMPLE " --format json");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  std::size_t with_other = 0;
  for (const auto& row : rows) {
    if (row.at("best_other").is_null()) continue;
    ++with_other;
    EXPECT_NEAR(row.at("a_speedup_over_other").get<double>(),
                row.at("best_other_us").get<double>() / row.at("time_us_a").get<double>(), 1e-6);
  }
  EXPECT_GE(with_other, 20u) << result.out.substr(0, 2000);
}

TEST_F(Cli, SigintEndsCleanlyAndTheNextRunGoesOn) {
  const pid_t child = start(longer_tune + " --db t.db");
  ASSERT_TRUE(wait_for_measurements("t.db", 5));
  kill(child, SIGINT);
  const Result result = finish(child);
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_NE(result.err.find("saved in t.db"), std::string::npos) << result.err;
  const std::int64_t saved = measurements("t.db");
  EXPECT_GE(saved, 5);
  EXPECT_EQ(integrity("t.db"), "ok");

  const Result next = run(longer_tune + " --db t.db --budget 1s");
  EXPECT_EQ(next.code, 0) << next.err;
  EXPECT_GE(measurements("t.db"), saved);
}

TEST_F(Cli, SigtermIsTheSame) {
  const pid_t child = start(longer_tune + " --db t.db");
  ASSERT_TRUE(wait_for_measurements("t.db", 2));
  kill(child, SIGTERM);
  EXPECT_EQ(finish(child).code, 130);
}

TEST_F(Cli, SigkillLosesNothingThatWasRecorded) {
  const auto times = [&] {
    std::map<std::string, std::string> out;
    const auto database = db::Database::open((folder_ / "t.db").string(), db::Database::Mode::read_only);
    for (const auto& row : database.leaderboard({})) out[to_string(row.workload()) + row.config] = row.measured_at;
    return out;
  };
  std::map<std::string, std::string> before;
  for (int round = 1; round <= 4; ++round) {
    const pid_t child = start(longer_tune + " --no-final --db t.db");
    ASSERT_TRUE(wait_for_measurements("t.db", static_cast<std::int64_t>(before.size()) + 3));
    kill(child, SIGKILL);
    EXPECT_EQ(finish(child).code, 128 + SIGKILL);
    EXPECT_EQ(integrity("t.db"), "ok");
    const auto now = times();
    for (const auto& [what, when] : before) EXPECT_EQ(now.count(what) ? now.at(what) : "gone", when) << what;
    EXPECT_GE(now.size(), before.size() + 3);
    before = now;
  }
}

/// What a command writes to a terminal, both streams together.
std::string on_a_terminal(const fs::path& folder, const std::string& words, const char* no_color) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    no_color ? setenv("NO_COLOR", no_color, 1) : unsetenv("NO_COLOR");
    if (chdir(folder.c_str()) != 0) _exit(126);
    execl("/bin/sh", "sh", "-c", ("exec " ROWTUNE_PROGRAM " " + words).c_str(), nullptr);
    _exit(127);
  }
  std::string text;
  char part[4096];
  for (ssize_t n = 0; (n = read(terminal, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
  close(terminal);
  waitpid(child, nullptr, 0);
  return text;
}

TEST_F(Cli, StyleIsForTerminalsAndObeysNoColor) {
  ASSERT_EQ(run(small_tune + " --db t.db").code, 0);
  const std::string best = "best --op softmax --dtype f32 --shape 4x64 --regime warm --db t.db";
  const std::string bold = "\x1b[1m", any = "\x1b[";
  EXPECT_EQ(run(best).out.find(any), std::string::npos) << "a pipe gets plain text";
  EXPECT_NE(on_a_terminal(folder_, best, nullptr).find(bold), std::string::npos);
  EXPECT_NE(on_a_terminal(folder_, best, "").find(bold), std::string::npos) << "empty is as if it were not set";
  EXPECT_EQ(on_a_terminal(folder_, best, "1").find(any), std::string::npos);
}

TEST_F(Cli, TuneOpensWithASheetAndEndsWithTheNextCommands) {
  const Result result = run(small_tune + " --db t.db");
  for (const char* word : {"tunes on cpu", "limits", "workloads", "configs", "time", "Ctrl-C", "next:", "rowtune best",
                           "rowtune report", "rowtune dispatch"})
    EXPECT_NE(result.err.find(word), std::string::npos) << word << " is not in: " << result.err;
  EXPECT_EQ(run(small_tune + " --db t.db --quiet").err, "");
}

TEST_F(Cli, ABudgetThatIsSpentSaysWhichOneWouldDo) {
  const Result result =
      run("tune --device cpu --op softmax --dtype all --shapes 64x769 --regime warm --budget 0.2s --db t.db");
  EXPECT_NE(result.err.find("with --budget "), std::string::npos) << result.err;
}

TEST(WrittenByHand, ListsOfOperationsFollowTheWords) {
  const fs::path folder = ROWTUNE_TUNER_FOLDER;
  const std::string completion = read_file(folder / "completion.bash"),
                    schema = read_file(folder / "dispatch.schema.json");
  for (const Operation op : all_operations()) {
    EXPECT_NE((completion + " ").find(to_string(op)), std::string::npos) << to_string(op) << " is not completed";
    if (op != Operation::copy) {
      EXPECT_NE(schema.find("\"" + to_string(op) + "\""), std::string::npos)
          << to_string(op) << " is not in the schema";
    }
  }
}

}  // namespace
}  // namespace rowtune
