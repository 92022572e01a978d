// The table of mechanisms, and the names of media.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tx/mechanism/catalog.h>
#include <tx/mechanism/on_media/makers.h>

namespace stele::detail {

namespace {

std::vector<mechanism_entry>& table() {
  static std::vector<mechanism_entry> all = {
      {"default",
       "one streamed record and one fence a commit, none an ordered one; home written back in the "
       "background",
       log_kind::torn_bit, make_default_mechanism, storage::map_kind::shared},
      {"none", "no persistence: the ceiling", log_kind::none, make_none, storage::map_kind::shared},
      {"base", "log, commit record, home, cut: a fence after each", log_kind::ordered_writes,
       make_base_log, storage::map_kind::shared},
      {"redo", "torn-bit redo log, home written back in the commit", log_kind::torn_bit, make_redo,
       storage::map_kind::shared},
      {"redo-async", "torn-bit redo log, home written back in the background", log_kind::torn_bit,
       make_redo_async, storage::map_kind::shared},
      {"xil", "execution in log; home written back in the commit", log_kind::lines_or_blocks,
       make_xil, storage::map_kind::shared},
      {"vcbp", "volatile checkpoint with bulk persistence, over a streamed log", log_kind::torn_bit,
       make_vcbp, storage::map_kind::shared},
      {"blurred", "execution in log and volatile checkpoint", log_kind::lines_or_blocks,
       make_blurred, storage::map_kind::shared},
      {"adaptive", "blurred or vcbp, whichever is better on this medium and workload",
       log_kind::lines_or_blocks, make_adaptive, storage::map_kind::shared},
      {"undo", "torn-bit undo log, home written back in the commit", log_kind::torn_bit, make_undo,
       storage::map_kind::shared},
      {"archapt-undo", "undo log; home flushed late or, covered by checksums, not at all",
       log_kind::archapt_undo, make_archapt_undo, storage::map_kind::shared,
       format::home_kind::in_place, true, add_archapt_geometry},
      {"archapt-redo", "redo log; home flushed late or, covered by checksums, not at all",
       log_kind::archapt_redo, make_archapt_redo, storage::map_kind::shared,
       format::home_kind::in_place, true, add_archapt_geometry},
      {"log_structured", "the log is the only home: one fence a commit, cleaning in the background",
       log_kind::chunks, make_log_structured, storage::map_kind::shared, format::home_kind::log},
  };
  return all;
}

std::string& default_name() {
  static std::string name = "default";
  return name;
}

const lab_media*& lab_media_slot() {
  static const lab_media* lab = nullptr;
  return lab;
}

}  // namespace

const std::vector<mechanism_entry>& mechanisms() {
  return table();
}

const std::string& default_mechanism_name() noexcept {
  return default_name();
}
void set_default_mechanism(std::string name) {
  default_name() = std::move(name);
}

result<const mechanism_entry*> find_mechanism(std::string_view name) {
  if (name.empty()) name = default_name();
  std::vector<std::string> names;
  for (const mechanism_entry& m : table()) {
    if (m.name == name) return &m;
    names.push_back(m.name);
  }
  return base::fail(errc::not_found,
                    fmt::format("there is no mechanism named '{}'; choose one of {}", name,
                                fmt::join(names, ", ")));
}

const mechanism_entry* recovery_mechanism_of(log_kind logs) {
  for (const mechanism_entry& m : table())
    if (m.logs == logs && logs != log_kind::none) return &m;
  return nullptr;
}

void register_mechanism(mechanism_entry entry) {
  table().push_back(std::move(entry));
}

void register_lab_media(const lab_media& media) {
  lab_media_slot() = &media;
}
const lab_media* registered_lab_media() noexcept {
  return lab_media_slot();
}

std::unique_ptr<engine> mechanism_entry::on(pool_state& state, const media_choice& choice) const {
  if (choice.what != media_choice::kind::lab) return make(state, choice);
  // Not null: only lab media choose kind::lab
  return registered_lab_media()->make(name, state, choice);
}

result<media_choice> parse_media(std::string_view specification) {
  using kind = media_choice::kind;
  for (const auto& [name, what] : {std::pair{"adr", kind::adr},
                                   {"eadr", kind::eadr},
                                   {"process", kind::process},
                                   {"file", kind::file}})
    if (specification == name) return media_choice{.what = what};
  const lab_media* const lab = registered_lab_media();
  if (const auto chosen = lab != nullptr ? lab->parse(specification) : std::nullopt) return *chosen;
  return base::fail(
      errc::invalid_argument,
      fmt::format("there is no medium '{}'; choose adr, eadr, process, file{}", specification,
                  lab != nullptr
                      ? fmt::format(", {}", lab->names)
                      : " (slower memory is emulated by programs of the laboratory: stele-lab)"));
}

}  // namespace stele::detail
