#include "native/trace/trace_settings.hpp"

namespace ringlet::native {

TraceSettings read_trace_settings(const InitOptions& options, const Variables& variables) {
  TraceSettings settings;
  if (const auto file = text_setting(options.trace, "the option trace", variables, {"RINGLET_TRACE"})) {
    settings.file = file->value;
    if (!options.trace) settings.variable = file->name;
  }
  if (const auto given = first_set(variables, {"RINGLET_TRACE_FD"})) settings.given_file = parse_descriptor(*given);
  if (const auto limit = first_set(variables, {"RINGLET_TRACE_MIB"}))
    settings.most_bytes = static_cast<std::size_t>(parse_integer(*limit, 1, 1 << 20)) << 20;
  return settings;
}

}  // namespace ringlet::native
