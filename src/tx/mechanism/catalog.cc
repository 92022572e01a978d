// The table of mechanisms, and the names of media.
#include <base/check.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mechanism_list.h>
#include <tx/mechanism/catalog.h>

namespace stele::detail {

// Each is defined in a file made from on_media.cc.in.
#define STELE_DECLARE(id) mechanism_entry entry_##id();
STELE_EACH_MECHANISM(STELE_DECLARE)
#undef STELE_DECLARE

namespace {

std::vector<mechanism_entry>& table() {
#define STELE_ENTRY(id) entry_##id(),
  static std::vector<mechanism_entry> all = {STELE_EACH_MECHANISM(STELE_ENTRY)};
#undef STELE_ENTRY
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

const record_form* other_form_of(log_kind logs) {
  const mechanism_entry* const of = recovery_mechanism_of(logs);
  return of != nullptr ? of->other_form : nullptr;
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
