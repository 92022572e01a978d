// The designs by name. A new design is a source file and a line here, or a plug-in (sim/plugin.h).
#include <base/check.h>
#include <sim/design/kiln.h>
#include <sim/design/logs.h>

#include <bit>

namespace stele::sim {

namespace {

using made = result<std::unique_ptr<design>>;

class native final : public design {
 public:
  void visit_state(archive&) override {}
};

made make_kiln(const design_context& w) {
  const std::size_t sets = w.caches.shared().sets();
  if (!w.machine.l3.nonvolatile || !std::has_single_bit(sets))
    return base::fail(errc::invalid_argument,
                      "kiln needs a nonvolatile l3 with a power of two of sets; this one has " +
                          std::to_string(sets) +
                          (w.machine.l3.nonvolatile ? "" : " and is volatile"));
  return std::make_unique<kiln>(w);
}

constexpr design_kind own[] = {
    {"native", [](const design_context&) -> made { return std::make_unique<native>(); }},
    {"rlog", [](const design_context& w) -> made { return make_redo_log(w, false); }},
    {"ulog", [](const design_context& w) -> made { return make_undo_log(w, false); }},
    {"crlog", [](const design_context& w) -> made { return make_redo_log(w, true); }},
    {"culog", [](const design_context& w) -> made { return make_undo_log(w, true); }},
    {"kiln", make_kiln}};

}  // namespace

std::span<const design_kind> design_kinds() noexcept {
  return own;
}

kinds<design_kind>& designs() {
  static kinds<design_kind> all(own);
  return all;
}

result<const design_kind*> design_named(std::string_view name) {
  if (const design_kind* k = designs().find(name)) return k;
  return base::fail(errc::invalid_argument, "there is no design \"" + std::string(name) +
                                                "\"; choose one of " + designs().listed());
}

}  // namespace stele::sim
