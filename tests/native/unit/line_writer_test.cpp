// SPDX-License-Identifier: Apache-2.0
#include "native/line_writer.hpp"

#include "native/errors.hpp"
#include "native/fd.hpp"

#include <csignal>
#include <gtest/gtest.h>

namespace native {
namespace {

struct Pipe {
  Fd reader, writer;

  Pipe() {
    int ends[2];
    if (pipe(ends) != 0)
      throw system_failure("pipe");
    reader = Fd(ends[0]);
    writer = Fd(ends[1]);
  }

  std::string read_some() const {
    std::string text(1 << 20, '\0');
    const ssize_t n = read(reader.get(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return text;
  }
};

TEST(Lines, ArriveWholeAndInOrder) {
  const Pipe pipe;
  Lines lines(pipe.writer.get(), 1000);
  lines.add("one");
  lines.add("two");
  lines.flush();
  EXPECT_EQ(pipe.read_some(), "one\ntwo\n");
  EXPECT_EQ(lines.pending_bytes(), 0u);
}

TEST(Lines, NeverWaitForAReaderThatDoesNotRead) {
  const Pipe pipe;
  Lines lines(pipe.writer.get(), 1 << 20);
  const std::string line(99, 'x');
  for (int i = 0; i < 1000; i++)
    lines.add(line);
  lines.flush(); // more than a pipe holds
  EXPECT_GT(lines.pending_bytes(), 0u);
  std::string read = pipe.read_some();
  lines.finish(100);
  EXPECT_EQ(read.size() + pipe.read_some().size(), 100'000u);
}

TEST(Lines, BeyondTheLimitAreDroppedAndCounted) {
  const Pipe pipe;
  Lines lines(pipe.writer.get(), 10);
  lines.add("12345");
  lines.add("67890");
  lines.add("abc");
  EXPECT_EQ(lines.dropped(), 1u);
  lines.flush();
  EXPECT_EQ(pipe.read_some(), "12345\nabc\n");
}

TEST(Lines, SayWhenTheReaderIsGone) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.reader = Fd();
  Lines lines(pipe.writer.get(), 1000);
  lines.add("x");
  EXPECT_THROW(lines.flush(), Stopped);
}

} // namespace
} // namespace native
