#include "kernels/cuda/sources.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace rowtune::cuda {
namespace {

TEST(Sources, CommentsIndentationAndEmptyLinesAreNoCode) {
  EXPECT_EQ(without_comments("int a;  // what it is\n\n  /* of\n two lines */\n  int b; /* here */ int c;\n"),
            "int a;\nint b; int c;\n");
  EXPECT_EQ(without_comments("a\t=  1;\r\n"), "a = 1;\n");
  EXPECT_EQ(without_comments("int a/**/b;"), "int a b;");
}

TEST(Sources, LiteralsAreKept) {
  for (const char* code :
       {"f(\"// no  comment\");", "f(\"\\\"/* neither */\");", "c = '\"'; d = \"  \";", "n = 1'000'000;"})
    EXPECT_EQ(without_comments(code), code);
  EXPECT_EQ(without_comments("c = '\\''; // after"), "c = '\\''; ");
}

TEST(Sources, WhatIsNotClosedEndsWithTheText) {
  EXPECT_EQ(without_comments("a; // b"), "a; ");
  EXPECT_EQ(without_comments("a; /* b"), "a; ");
  EXPECT_EQ(without_comments("a = \"b"), "a = \"b");
  EXPECT_EQ(without_comments("a = \"b\\"), "a = \"b\\");
  EXPECT_EQ(without_comments(""), "");
}

TEST(Sources, KernelHeadersLoseTheirCommentsOnly) {
  for (const Source& source : embedded_sources()) {
    const std::string code = without_comments(source.text);
    EXPECT_EQ(code.find("// "), std::string::npos) << source.name;
    EXPECT_LT(code.size(), std::strlen(source.text)) << source.name;
    EXPECT_EQ(without_comments(code), code) << source.name;
  }
}

}  // namespace
}  // namespace rowtune::cuda
