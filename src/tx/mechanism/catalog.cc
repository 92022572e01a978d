// The table of mechanisms, and the names of media.
#include <base/assert.h>
#include <base/check.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mechanism_list.h>
#include <published_logs.h>
#include <tx/mechanism/catalog.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace stele::detail {

// Each is defined in a file made from on_media.cc.in.
#define STELE_DECLARE(id) mechanism_entry entry_##id();
STELE_EACH_MECHANISM(STELE_DECLARE)
#undef STELE_DECLARE

namespace {

std::deque<mechanism_entry>& table() {
#define STELE_ENTRY(id) entry_##id(),
  static std::deque<mechanism_entry> all = {STELE_EACH_MECHANISM(STELE_ENTRY)};
#undef STELE_ENTRY
  return all;
}
std::shared_mutex& table_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

// The mechanisms of libstele_published, for sentences: a program that does not link it is to say
// where a mechanism is, and who can recover a pool.
struct published_mechanism {
  std::string_view name;
  log_kind logs;
};
#define STELE_NAME_AND_LOGS(name, logs) {name, log_kind::logs},
constexpr published_mechanism published[] = {STELE_EACH_PUBLISHED_LOGS(STELE_NAME_AND_LOGS)};
#undef STELE_NAME_AND_LOGS

std::string& default_name() {
  static std::string name = "default";
  return name;
}

const lab_media*& lab_media_slot() {
  static const lab_media* lab = nullptr;
  return lab;
}

}  // namespace

const std::deque<mechanism_entry>& mechanisms() {
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
  const std::shared_lock hold(table_mutex());
  for (const mechanism_entry& m : table()) {
    if (m.name == name) return &m;
    names.push_back(m.name);
  }
  if (std::ranges::any_of(published, [&](const auto& p) { return p.name == name; }))
    return base::fail(
        errc::unsupported,
        fmt::format(
            "this program does not have the mechanism '{}': it is one of libstele_published, "
            "for programs in C++ (stele/published.h) and the command stele; use 'default'",
            name));
  return base::fail(errc::not_found,
                    fmt::format("there is no mechanism named '{}'; choose one of {}", name,
                                fmt::join(names, ", ")));
}

const mechanism_entry* recovery_mechanism_of(log_kind logs) {
  const std::shared_lock hold(table_mutex());
  for (const mechanism_entry& m : table())
    if (m.logs == logs && logs != log_kind::none) return &m;
  return nullptr;
}

const record_form* other_form_of(log_kind logs) {
  const mechanism_entry* const of = recovery_mechanism_of(logs);
  return of != nullptr ? of->other_form : nullptr;
}

std::string published_with_logs(log_kind logs) {
  std::string names;
  std::string_view last;
  for (const published_mechanism& p : published) {
    if (p.logs != logs) continue;
    if (!last.empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", last);
    last = p.name;
  }
  return names.empty() ? std::string(last) : fmt::format("{} or {}", names, last);
}

void register_mechanism(mechanism_entry entry) {
  STELE_ASSERT_ALWAYS(!entry.name.empty() && entry.make != nullptr);
  const std::unique_lock hold(table_mutex());
  table().push_back(std::move(entry));
}

void register_lab_media(const lab_media& media) {
  STELE_ASSERT_ALWAYS(media.parse != nullptr && media.record != nullptr && media.make != nullptr);
  lab_media_slot() = &media;
}
const lab_media* registered_lab_media() noexcept {
  return lab_media_slot();
}

std::unique_ptr<engine> mechanism_entry::on(pool_state& state, const media_choice& choice) const {
  STELE_ASSERT_ALWAYS(make != nullptr);
  STELE_ASSERT_ALWAYS((choice.lab != nullptr) == (choice.what == media_choice::kind::lab));
  if (choice.what != media_choice::kind::lab) return make(state, choice);
  STELE_ASSERT_ALWAYS(registered_lab_media() != nullptr);  // only lab media choose kind::lab
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
  if (lab != nullptr) {
    auto chosen = lab->parse(specification);
    if (!chosen) return std::unexpected(std::move(chosen.error()));
    if (*chosen) return std::move(**chosen);
  }
  return base::fail(
      errc::invalid_argument,
      fmt::format("there is no medium '{}'; choose adr, eadr, process, file{}", specification,
                  lab != nullptr
                      ? fmt::format(", {}", lab->names)
                      : " (slower memory is emulated by programs of the laboratory: stele-lab)"));
}

}  // namespace stele::detail
