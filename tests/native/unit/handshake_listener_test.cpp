// SPDX-License-Identifier: Apache-2.0
#include "native/control/handshake_listener.hpp"

#include "native/errors.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace native {
namespace {

constexpr std::size_t kHelloBytes = 4;
constexpr std::size_t kMaxGuests = 3;

Fd tcp_socket(int flags = 0) { return Fd(socket(AF_INET, SOCK_STREAM | flags, 0)); }

class DoorTest : public testing::Test {
protected:
  DoorTest() {
    Fd listener = tcp_socket(SOCK_NONBLOCK);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    if (bind(listener.get(), reinterpret_cast<sockaddr *>(&address_), length) != 0 || listen(listener.get(), 9) != 0)
      throw system_failure("cannot listen");
    getsockname(listener.get(), reinterpret_cast<sockaddr *>(&address_), &length);
    door_.emplace(std::move(listener), kHelloBytes, kMaxGuests);
  }

  Fd comes(const std::string &words) const {
    Fd fd = tcp_socket();
    if (connect(fd.get(), reinterpret_cast<const sockaddr *>(&address_), sizeof address_) != 0)
      throw system_failure("cannot connect");
    says(fd, words);
    return fd;
  }

  static void says(const Fd &fd, const std::string &words) { send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL); }

  // Who has entered now.
  std::vector<std::string> look() {
    std::vector<std::string> entered;
    door_->look([&entered](Fd, const std::string &hello) { entered.push_back(hello); });
    return entered;
  }

  std::optional<Door> door_;

private:
  sockaddr_in address_{};
};

using Hellos = std::vector<std::string>;

TEST_F(DoorTest, WhoHasSaidAHelloEntersOnce) {
  const Fd quick = comes("abcdefgh"), slow = comes("ij");
  EXPECT_EQ(look(), Hellos{"abcd"});
  says(slow, "kl");
  EXPECT_EQ(look(), Hellos{"ijkl"});
  EXPECT_EQ(look(), Hellos{});
  EXPECT_EQ(door_->deadline(), std::nullopt);
  EXPECT_EQ(door_->shown_out(), 0u);
}

TEST_F(DoorTest, TheNewestShowsOutTheOldest) {
  std::vector<Fd> slow;
  for (int i = 0; i < 5; i++)
    slow.push_back(comes("l"));
  EXPECT_EQ(look(), Hellos{});
  EXPECT_EQ(door_->shown_out(), 2u);
  says(slow[0], "ate");
  says(slow[4], "ast");
  EXPECT_EQ(look(), Hellos{"last"});
}

TEST_F(DoorTest, AConnectionThatSendsItsHelloAtOnceIsNeverShownOut) {
  const Fd one = comes("ab"), other = comes("cd");
  EXPECT_EQ(look(), Hellos{});
  std::vector<Fd> quick;
  for (int i = 0; i < 8; i++)
    quick.push_back(comes("abc" + std::to_string(i)));
  const Fd slow = comes("e"), slower = comes("f");
  says(one, "xy");
  EXPECT_EQ(look(), (Hellos{"abxy", "abc0", "abc1", "abc2", "abc3", "abc4", "abc5", "abc6", "abc7"}));
  EXPECT_EQ(door_->shown_out(), 0u);
}

TEST_F(DoorTest, SilentConnectionsTakeNoPlace) {
  std::vector<Fd> silent;
  for (int i = 0; i < 5; i++)
    silent.push_back(comes(""));
  const Fd slow = comes("ij");
  EXPECT_EQ(look(), Hellos{});
  EXPECT_EQ(door_->shown_out(), 0u);
  says(slow, "kl");
  says(silent[0], "late");
  EXPECT_EQ(look(), (Hellos{"ijkl", "late"}));
}

TEST_F(DoorTest, AfterAnExceptionAllOtherConnectionsStay) {
  const Fd first = comes("a"), second = comes("b"), third = comes("c");
  EXPECT_EQ(look(), Hellos{});
  for (const Fd *each : {&first, &second, &third})
    says(*each, "xyz");
  Hellos entered;
  const auto enter = [&entered](Fd fd, const std::string &hello) {
    EXPECT_TRUE(fd);
    if (hello == "bxyz")
      throw Failure("no room");
    entered.push_back(hello);
  };
  EXPECT_THROW(door_->look(enter), Failure);
  door_->look(enter);
  EXPECT_EQ(entered, (Hellos{"axyz", "cxyz"}));
}

TEST_F(DoorTest, WhoLeavesIsForgotten) {
  comes("ab");
  EXPECT_EQ(look(), Hellos{});
  EXPECT_EQ(look(), Hellos{});
  EXPECT_EQ(door_->shown_out(), 1u);
  EXPECT_EQ(door_->deadline(), std::nullopt);
}

TEST_F(DoorTest, ASilentGuestHasADeadline) {
  const Fd silent = comes("ab");
  look();
  ASSERT_TRUE(door_->deadline());
  const Nanos left_ns = *door_->deadline() - monotonic_ns();
  EXPECT_GT(left_ns, 0);
  EXPECT_LE(left_ns, 5'000'000'000);
}

TEST_F(DoorTest, WithoutDescriptorsItRestsAndMakesRoom) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit before = limit;
  const Fd silent = comes("ab");
  look();
  const Fd newcomer = comes("newc");
  const Fd probe = tcp_socket(); // the lowest free number, and so all that may still be opened
  limit.rlim_cur = static_cast<rlim_t>(probe.get()) + 1;
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(look(), Hellos{});
  std::vector<pollfd> fds;
  door_->add_interests(fds);
  EXPECT_EQ(fds.at(0).fd, -1);
  EXPECT_EQ(door_->shown_out(), 1u); // the silent one, whose descriptor is free now
  ASSERT_TRUE(door_->deadline());
  sleep_until(*door_->deadline());
  EXPECT_EQ(look(), Hellos{"newc"});
  setrlimit(RLIMIT_NOFILE, &before);
}

} // namespace
} // namespace native
