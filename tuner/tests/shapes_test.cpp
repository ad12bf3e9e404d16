#include "tuner/shapes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace rowtune {
namespace {

bool has(const std::vector<Shape>& shapes, std::int64_t rows, std::int64_t cols) {
  return std::find(shapes.begin(), shapes.end(), Shape::of(rows, cols)) != shapes.end();
}

std::string message_of(const std::string& text) {
  try {
    ShapeSet::parse(text);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

class ShapesFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("rowtune-shapes-" + std::to_string(getpid()) + ".txt");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_.string();
  }
  std::filesystem::path path_;
};

TEST(Presets, QuickHas256x1000EverywhereAndIsSmall) {
  const ShapeSet quick = ShapeSet::parse("quick");
  EXPECT_TRUE(quick.is_quick());
  for (Operation op : all_operations()) {
    EXPECT_TRUE(has(quick.of(op), 256, 1000)) << to_string(op);
    EXPECT_GE(quick.of(op).size(), 3u);
    for (const Shape& shape : quick.of(op)) EXPECT_LE(shape.rows * shape.cols, 1 << 20) << to_string(shape);
  }
}

TEST(Presets, LlmHoldsTheShapesOfEachOperation) {
  const ShapeSet llm = ShapeSet::parse("llm");
  const auto scores = llm.of(Operation::softmax), norms = llm.of(Operation::rmsnorm);
  EXPECT_EQ(scores, llm.of(Operation::log_softmax));
  EXPECT_EQ(norms, llm.of(Operation::layernorm));
  EXPECT_EQ(norms, llm.of(Operation::fused_add_rmsnorm));
  EXPECT_EQ(scores.size(), 6u + 4u + 16u + 2u + 4u);  // attention rows, long ones, logits, two single ones, odd sizes
  EXPECT_EQ(norms.size(), 24u + 5u + 4u);             // hidden sizes, five more, odd sizes
  for (auto [r, c] : {std::pair{1048576, 16}, {4096, 1000}, {256, 152064}, {64, 50000}, {1, 1048576}, {8192, 1153}})
    EXPECT_TRUE(has(scores, r, c)) << r << "x" << c;
  for (auto [r, c] : {std::pair{1, 2048}, {16, 7168}, {8192, 16384}, {65536, 256}, {512, 131072}, {4097, 1023}})
    EXPECT_TRUE(has(norms, r, c)) << r << "x" << c;
  EXPECT_FALSE(has(norms, 64, 50000));
}

TEST(Presets, CliffsStandBesideEachPowerOfTwo) {
  const auto shapes = ShapeSet::parse("cliffs").of(Operation::softmax);
  EXPECT_EQ(shapes.size(), 14u * 3u + 2u);
  for (auto [r, c] :
       {std::pair{2097152, 16}, {32800, 1023}, {32768, 1024}, {32736, 1025}, {29127, 1152}, {255, 131073}})
    EXPECT_TRUE(has(shapes, r, c)) << r << "x" << c;
}

TEST(Presets, CopyHoldsTheCeilingOfEveryShape) {
  for (const char* name : {"quick", "llm", "cliffs"}) {
    const ShapeSet set = ShapeSet::parse(name);
    const auto copies = set.of(Operation::copy);
    for (Operation op : all_operations()) {
      if (op == Operation::copy) continue;
      for (const Shape& shape : set.of(op)) {
        const Shape ceiling = ceiling_of(Workload::of(op, Dtype::f32, shape)).shape;
        EXPECT_NE(std::find(copies.begin(), copies.end(), ceiling), copies.end()) << to_string(ceiling);
      }
    }
  }
}

TEST(ShapeList, ParsesStridesDropsRepetitionsKeepsOrder) {
  const auto shapes = ShapeSet::parse("64x769, 4x4097,64x769,8x100:ld=128:off=1").of(Operation::softmax);
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0], Shape::of(64, 769));
  EXPECT_EQ(shapes[1], Shape::of(4, 4097));
  EXPECT_EQ(shapes[2], (Shape{8, 100, 128, 1}));
}

TEST(ShapeList, RefusesWhatIsNoShape) {
  for (const char* text : {"0x-3", "64", "64x", "64x5,", ",", "4x4;5x5", "1x99999999999", ""})
    EXPECT_THROW(ShapeSet::parse(text), UsageError) << text;
  EXPECT_THROW(ShapeSet::parse("0x5"), UsageError);
  EXPECT_NE(message_of("0x5").find("nothing to time"), std::string::npos);
}

TEST(ShapeList, UnknownWordNamesThePresets) {
  EXPECT_NE(message_of("quik").find("quick, llm, cliffs"), std::string::npos);
  EXPECT_THROW(ShapeSet::parse("quik"), UsageError);
}

TEST_F(ShapesFile, CommentsBlankLinesAndWindowsEndings) {
  const std::string path = write("# ours\n\n  64x769  # odd\r\n4x4097\n64x769\n");
  const auto shapes = ShapeSet::parse(path).of(Operation::rmsnorm);
  EXPECT_EQ(shapes, (std::vector<Shape>{Shape::of(64, 769), Shape::of(4, 4097)}));
}

TEST_F(ShapesFile, ErrorsNameTheLine) {
  const std::string path = write("64x769\n# fine\n64y5\n");
  EXPECT_NE(message_of(path).find("line 3"), std::string::npos) << message_of(path);
  EXPECT_THROW(ShapeSet::parse(path), UsageError);
}

TEST_F(ShapesFile, EmptyFileAndDirectoryAreRefused) {
  EXPECT_THROW(ShapeSet::parse(write("# nothing\n")), UsageError);
  EXPECT_THROW(ShapeSet::parse("/"), std::exception);
}

TEST(Shapes, TheLargestHasMoreBytesThanCanBeCounted) {
  for (const Operation op : all_operations())
    EXPECT_EQ(bytes_moved(Workload::of(op, Dtype::f32, parse_shape("2147483647x2147483647"))), INT64_MAX);
  EXPECT_EQ(bytes_moved(Workload::of(Operation::layernorm, Dtype::bf16, Shape::of(3, 5))), (3 * 5 * 2 + 2 * 5) * 2);
}

}  // namespace
}  // namespace rowtune
