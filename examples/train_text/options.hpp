#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "settings.hpp"

namespace train_text {

/// What the user chose: the settings, of which rank 0's count, and what is each rank's own.
struct Options : Settings {
  bool json = false;
  std::filesystem::path checkpoint;  // the folder; empty: rank 0's, if it has one
  std::filesystem::path data;        // only rank 0's is read
  std::filesystem::path log_losses;
  std::filesystem::path log_hashes;
  bool shares_follow_guests = true;  // until they are known
  std::vector<std::string> given;    // the names of the settings that stand on the command line
};

/// The settings as text, by the names of their options.
std::vector<std::pair<std::string, std::string>> named_values(const Settings& settings);
/// Those of them that decide about the course of training, and so must not change in the middle of it.
std::vector<std::pair<std::string, std::string>> lasting_values(const Settings& settings);

/// Reads the command line. Empty where only help was asked for, which has been printed then. Throws `InputError` for what makes no sense.
std::optional<Options> parse_options(int argc, char** argv);

/// Once the group is there: how many of its ranks are browsers.
void set_guests(Options& options, int guests);

}  // namespace train_text
