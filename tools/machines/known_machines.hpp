#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/machines/introduction.hpp"

namespace ringlet::machines {

enum class Trust : std::uint8_t {
  paired,  // a code that a person carried has proved the key
  added,   // the user has given the key
  seen,    // it came with the first conversation
  removed  // the user trusts it no more
};

std::string_view to_string(Trust trust);

struct KnownMachine {
  std::string name;
  PublicKey key{};
  Trust trust = Trust::seen;
  friend bool operator==(const KnownMachine&, const KnownMachine&) = default;
};

/// What is to be thought of a machine that has proved its key.
struct Acquaintance {
  bool first = false;     // it was not known, and is from now on
  std::string refusal{};  // a sentence with both keys and what to do; empty: it is trusted
  std::string name{};     // first: the name by which it is known from now on
};

/// The machines of one group that this user knows, in $XDG_CONFIG_HOME/ringlet/machines/GROUP, by default in ~/.config: a line for each,
/// "paired|added|seen|removed KEY NAME". Names are unique but for those of removed machines; one key may have several names. Once a machine
/// is removed, the group is closed here: unknown keys are refused, since a removed machine could simply make another one.
///
/// All functions read the file anew, and change it in one step, so that processes may do so at the same time. They throw `InvalidArgument`
/// with the path and what to do if it cannot be read or written, if others may use it, or if a line is wrong; nothing is changed then.
class KnownMachines {
 public:
  static constexpr std::size_t kMaxKnown = 512;
  static constexpr std::size_t kMaxRemoved = 256;  // the oldest are forgotten; their keys are refused as unknown ones

  /// `own` is this machine's key, which is trusted.
  KnownMachines(std::string group, const PublicKey& own, Variables variables);

  std::vector<KnownMachine> load() const;
  /// A machine asks this one for something. It is known by its key, whatever it calls itself. Several may have one name, such as that of
  /// their make, and then get a number behind it; but the name of one that was paired or added is nobody else's.
  Acquaintance meet_asking(const std::string& name, const PublicKey& key) const;
  /// A machine answers in the place of the machine of this name.
  Acquaintance meet_answering(const std::string& name, const PublicKey& key) const;
  /// The same without remembering a machine that is not known.
  Acquaintance judge_answering(const std::string& name, const PublicKey& key) const { return judge_answering(load(), name, key); }
  /// From now on this is the machine of this name, also if it was removed before.
  void trust_paired(const std::string& name, const PublicKey& key) const;

  // These throw if a name is not known, or is another machine's.
  void add(const std::string& name, const PublicKey& key, tokens::Replace replace) const;
  void rename(const std::string& from, const std::string& to) const;
  /// Returns the machine's key. All other names of it are removed, too.
  PublicKey remove(const std::string& name) const;

 private:
  using Machines = std::vector<KnownMachine>;

  std::string folder_path() const;
  Machines read(const tokens::PrivateFolder& folder) const;
  /// Reads, has `change` change the list, and writes it, while no other process does.
  template <class Change>
  void rewrite(Change change) const;
  template <class Judge>
  Acquaintance meet(const PublicKey& key, Judge judge) const;
  Acquaintance judge_asking(const Machines& machines, const std::string& name, const PublicKey& key) const;
  Acquaintance judge_answering(const Machines& machines, const std::string& name, const PublicKey& key) const;
  [[noreturn]] void refuse_unknown(const std::string& name) const;

  std::string group_;
  PublicKey own_;
  Variables variables_;
};

/// Returns why this cannot be a machine's name, or nothing if it can.
std::optional<std::string> find_name_mistake(const std::string& name);

}  // namespace ringlet::machines
