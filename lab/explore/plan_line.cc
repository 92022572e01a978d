// Writes plans as words and reads them.
#include <explore/mutant_table.h>
#include <explore/plan_line.h>
#include <fmt/format.h>

namespace stele::explore {

std::string format_plan(const plan& p) {
  std::string text = fmt::format(
      "{}/{} ops={} keys={} value={} threads={} seed={} pool={} logs={}x{} further={} mutant={}",
      p.mechanism, p.workload, p.operations, p.keys, p.value_size, p.threads, p.seed, p.pool_size,
      p.log_count, p.log_size, p.further_operations, name_of(p.mutant));
  if (!p.reopen.empty()) text += " reopen=" + p.reopen;
  if (!p.created_for.empty()) text += " made-for=" + p.created_for;
  if (p.sync_every != 0) text += fmt::format(" sync={}", p.sync_every);
  if (p.warm_up != plan{}.warm_up) text += fmt::format(" warm-up={}", p.warm_up);
  if (p.cache_bytes != plan{}.cache_bytes) text += fmt::format(" cache={}", p.cache_bytes);
  if (p.coalesce) text += " coalesce=1";
  if (p.halves) text += " halves=1";
  if (p.checkpoint_commits != 0) text += fmt::format(" checkpoint={}", p.checkpoint_commits);
  if (p.shared_log) text += " shared-log=1";
  if (p.block_checksums) text += " sums=1";
  if (p.grow_every != 0) text += fmt::format(" grow={}", p.grow_every);
  if (p.whole_cache) text += " whole-cache=1";
  if (p.media != plan{}.media) text += " media=" + p.media;
  if (!p.omitted_fence.empty()) text += " drop=" + p.omitted_fence;
  if (p.fail_call != 0) text += fmt::format(" fail-call={}", p.fail_call);
  if (p.fault != plan{}.fault) text += fmt::format(" fault={}", name_of(p.fault));
  return text;
}

namespace {

bool parse_fault(std::string_view value, file_fault& f) {
  const auto known = file_fault_named(value);
  if (known) f = *known;
  return known.has_value();
}

bool parse_setting(std::string_view name, std::string_view value, plan& p) {
  if (name == "ops") return parse_number(value, p.operations);
  if (name == "keys") return parse_number(value, p.keys);
  if (name == "value") return parse_number(value, p.value_size);
  if (name == "threads") return parse_number(value, p.threads);
  if (name == "sync") return parse_number(value, p.sync_every);
  if (name == "warm-up") return parse_number(value, p.warm_up);
  if (name == "cache") return parse_number(value, p.cache_bytes);
  if (name == "coalesce") return p.coalesce = value == "1", true;
  if (name == "halves") return p.halves = value == "1", true;
  if (name == "checkpoint") return parse_number(value, p.checkpoint_commits);
  if (name == "shared-log") return p.shared_log = value == "1", true;
  if (name == "sums") return p.block_checksums = value == "1", true;
  if (name == "grow") return parse_number(value, p.grow_every);
  if (name == "whole-cache") return p.whole_cache = value == "1", true;
  if (name == "media") return p.media = value, true;
  if (name == "drop") return p.omitted_fence = value, true;
  if (name == "fail-call") return parse_number(value, p.fail_call);
  if (name == "fault") return parse_fault(value, p.fault);
  if (name == "seed") return parse_number(value, p.seed);
  if (name == "pool") return parse_number(value, p.pool_size);
  if (name == "reopen") return p.reopen = value, true;
  if (name == "made-for") return p.created_for = value, true;
  if (name == "further") return parse_number(value, p.further_operations);
  if (name == "logs") {
    const auto x = value.find('x');
    return x != std::string_view::npos && parse_number(value.substr(0, x), p.log_count) &&
           parse_number(value.substr(x + 1), p.log_size);
  }
  const auto mutant = mutant_named(value);
  if (name != "mutant" || !mutant) return false;
  p.mutant = *mutant;
  return true;
}

}  // namespace

bool parse_plan_word(std::string_view word, plan& p) {
  const auto equals = word.find('='), slash = word.find('/');
  if (equals != std::string_view::npos)
    return parse_setting(word.substr(0, equals), word.substr(equals + 1), p);
  if (slash == std::string_view::npos) return false;
  p.mechanism = word.substr(0, slash);
  p.workload = word.substr(slash + 1);
  return true;
}

}  // namespace stele::explore
