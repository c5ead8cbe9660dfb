#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "settings.hpp"

namespace train_text {

/// The options chosen by the user. All ranks use rank 0's settings; the other members are each rank's own.
struct Options : Settings {
  bool json = false;
  std::filesystem::path checkpoint;  // the folder; if empty, rank 0's folder is used if it has one
  std::filesystem::path data;        // only rank 0's is read
  std::filesystem::path log_losses;
  std::filesystem::path log_hashes;
  std::optional<std::string> trace;  // the file of this rank's trace
  bool shares_follow_guests = true;  // true for --shares auto
  std::vector<std::string> given;    // the names of the settings given on the command line
};

/// Returns the settings as text, with the names of their options.
std::vector<std::pair<std::string, std::string>> named_values(const Settings& settings);
/// Returns those settings that influence the training result, and so must not change during a run.
std::vector<std::pair<std::string, std::string>> lasting_values(const Settings& settings);

/// Reads the command line. Returns nothing if only help was asked for, and prints it. Throws `InputError` if an option is not valid.
std::optional<Options> parse_options(int argc, char** argv);

/// Sets the number of ranks that are browsers, once the group is known.
void set_guests(Options& options, int guests);

}  // namespace train_text
