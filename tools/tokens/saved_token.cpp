#include "tools/tokens/saved_token.hpp"

#include <fmt/format.h>

#include "core/base/printable.hpp"
#include "core/base/refuse.hpp"
#include "native/token.hpp"

namespace ringlet::tokens {

namespace {

constexpr std::size_t kMaxGroupBytes = 64;
constexpr std::size_t kMaxTokenBytes = 4'096;
constexpr FolderWords kWords{"tokens", "its token is no secret; make another one", "it is no token; remove it"};

std::string tokens_folder(const Variables& variables) { return config_folder(variables, "saved tokens") + "/tokens"; }

void check_group(const std::string& group) {
  if (auto mistake = find_group_mistake(group)) refuse(std::move(*mistake));
}

}  // namespace

std::optional<std::string> find_group_mistake(const std::string& group) {
  const bool is_name = !group.empty() && group.size() <= kMaxGroupBytes && group.front() != '.' && is_printable(group) &&
                       group.find('/') == std::string::npos;
  if (is_name) return std::nullopt;
  return fmt::format("group '{}': give 1 to {} bytes of UTF-8 without '/' and control characters, and no '.' at the beginning",
                     printable(cut_text(group, kMaxGroupBytes)), kMaxGroupBytes);
}

std::string saved_token_path(const std::string& group, const Variables& variables) {
  check_group(group);
  return tokens_folder(variables) + "/" + group;
}

std::optional<std::string> load_token(const std::string& group, const Variables& variables) {
  check_group(group);
  const auto folder = PrivateFolder::open(tokens_folder(variables), PrivateFolder::Access::owner_only, kWords);
  if (!folder) return std::nullopt;
  const std::optional<std::string> text = folder->read(group, kMaxTokenBytes);
  if (!text) return std::nullopt;
  return native::check_token(fmt::format("'{}'", folder->path_of(group)), *text);
}

bool save_token(const std::string& group, const std::string& token, Replace replace, const Variables& variables) {
  check_group(group);
  const std::string checked = native::check_token("the given text", token);
  return PrivateFolder::make(tokens_folder(variables), PrivateFolder::Access::owner_only, kWords).write(group, checked + "\n", replace);
}

}  // namespace ringlet::tokens
