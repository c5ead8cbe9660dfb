#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <input_error.hpp>
#include <loss_log.hpp>
#include <sstream>

#include "folder.hpp"

using namespace train_text;
using Catch::Matchers::Contains;

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void add_steps(LossLog& log, int first, int end, double loss) {
  for (int step = first; step < end; ++step) log.add(step, loss);
}

}  // namespace

TEST_CASE("a log that cannot be written says so at once or when it fails, and costs no more than itself") {
  if (!std::filesystem::exists("/dev/full")) return;
  const Folder folder;
  LogFile log;
  CHECK_THROWS_WITH(log.open(folder.path() / "missing" / "log", "--log-hashes", false),
                    Contains("No such file or directory") && Contains("--log-hashes"));
  CHECK_FALSE(log.has_failed());
  log.open("/dev/full", "--log-hashes", false);
  log.write("a line\n");
  CHECK(log.has_failed());
  CHECK_FALSE(log.is_open());
  log.write("another one\n");
  log.close();
  CHECK(log.has_failed());

  LogFile late;
  late.open_late(folder.path() / "missing" / "log", "--log-hashes", false);
  CHECK(late.has_failed());
  LogFile whole;
  whole.open(folder.path() / "log", "--log-hashes", false);
  whole.write("a line\n");
  whole.close();
  CHECK_FALSE(whole.has_failed());
  CHECK(contents(folder.path() / "log") == "a line\n");
}

TEST_CASE("the next rank 0 writes the losses that the one before it has not written, and none again") {
  const Folder folder;
  const auto path = folder.path() / "losses";
  const auto after_loss_of_rank_0 = [&](int written, int taken, std::string_view broken = "") {
    LossLog first(path, 4), next(path, 4);
    first.begin(false);
    add_steps(first, 0, written, 1);
    first.close();
    std::ofstream(path, std::ios::app) << broken;
    add_steps(next, 0, taken, 2);
    next.take_over(4);
    add_steps(next, taken, 10, 2);
    next.close();
    return contents(path);
  };
  CHECK(after_loss_of_rank_0(5, 8) == "0 1\n1 1\n2 1\n3 1\n4 1\n5 2\n6 2\n7 2\n8 2\n9 2\n");
  // Rank 0 was the faster one.
  CHECK(after_loss_of_rank_0(7, 5) == "0 1\n1 1\n2 1\n3 1\n4 1\n5 1\n6 1\n7 2\n8 2\n9 2\n");
  // It had a folder of its own, or the disk was full.
  CHECK(after_loss_of_rank_0(0, 6) == "4 2\n5 2\n6 2\n7 2\n8 2\n9 2\n");
  CHECK(after_loss_of_rank_0(6, 6, "6 ") == "0 1\n1 1\n2 1\n3 1\n4 1\n5 1\n6 \n6 2\n7 2\n8 2\n9 2\n");
}

TEST_CASE("rank 0 that was stopped writes nothing that the next one has written meanwhile") {
  const Folder folder;
  folder.write("losses", "of another run\n");
  LossLog first(folder.path() / "losses", 1), next(folder.path() / "losses", 1);
  first.begin(false);
  add_steps(first, 0, 3, 1);
  add_steps(next, 0, 3, 2);
  next.take_over(3);
  add_steps(next, 3, 8, 2);
  add_steps(first, 3, 4, 1);
  add_steps(next, 8, 9, 2);
  // Now it has learned it, has joined the others, and is rank 0 again.
  next.stop();
  first.take_over(9);
  add_steps(first, 9, 10, 1);
  CHECK(contents(folder.path() / "losses") == "0 1\n1 1\n2 1\n3 2\n4 2\n5 2\n6 2\n7 2\n8 2\n9 1\n");
}

TEST_CASE("a rank has a file of its own whatever its rank is later") {
  ::unsetenv("RINGLET_RANK");
  CHECK(own_file("log", 2, 0, Arrival::first) == "log.2");
  CHECK(own_file("log", 2, 3, Arrival::later) == "log.2.3");
  ::setenv("RINGLET_RANK", "0", 1);
  CHECK(own_file("log", 2, 0, Arrival::first) == "log.0");
  CHECK(own_file("log", 2, 3, Arrival::again) == "log.0");
  // Its launcher is not that of the others, of whom one has this number, too.
  CHECK(own_file("log", 2, 3, Arrival::later) == "log.2.3");
  ::unsetenv("RINGLET_RANK");
}

TEST_CASE("a file of another run hides no losses") {
  const Folder folder;
  folder.write("losses", "1999 0.5\n");
  LossLog next(folder.path() / "losses", 1);
  add_steps(next, 0, 3, 2);
  next.take_over(3);
  add_steps(next, 3, 5, 2);
  next.close();
  CHECK(contents(folder.path() / "losses") == "1999 0.5\n2 2\n3 2\n4 2\n");
}

TEST_CASE("a rank that has joined the others again does not write what it took before") {
  const Folder folder;
  LossLog log(folder.path() / "losses", 4);
  add_steps(log, 0, 6, 1);
  log.take_over(40);
  add_steps(log, 40, 42, 2);
  log.stop();
  add_steps(log, 42, 43, 2);
  log.take_over(40);
  CHECK(contents(folder.path() / "losses") == "40 2\n41 2\n42 2\n");
}
