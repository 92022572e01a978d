// Machines from files: each kind of error names file, line and the nearest right name; a machine
// can be written and read again; the presets have the numbers of their publications; the
// documentation names every key.
#include <base/scratch_directory.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sim/config_file.h>
#include <sim/config_keys.h>
#include <sim/design/kiln.h>
#include <sim/nearest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace stele::sim {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string configs = STELE_SOURCE_DIR "/lab/configs/";

std::string error_of(const std::string& text) {
  const auto m = parse_machine(text, "m.toml");
  return m ? "no error" : m.error().message;
}

machine_config preset(const std::string& name) {
  auto m = load_machine(configs + name + ".toml");
  EXPECT_TRUE(m) << m.error().message;
  return m ? std::move(*m) : machine_config{};
}

// The latency of the rule between two commands of a bank.
double wait_ns(const memory_config& c, const std::string& preceding, const std::string& following) {
  for (const timing_rule& r : c.timing)
    if (r.level == "bank" && r.preceding == preceding && r.following == following)
      return r.latency_ns;
  return -1;
}

class files : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.file(name)) << text;
    return dir_.file(name);
  }
  base::scratch_directory dir_;
};

TEST(nearest_name, is_the_one_of_fewest_edits_and_the_first_of_equals) {
  const std::vector<std::string_view> names = {"fr-fcfs", "fcfs", "strict", "rule1", "rule2"};
  EXPECT_EQ(nearest("frfcfs", names), "fr-fcfs");
  EXPECT_EQ(nearest("strickt", names), "strict");
  EXPECT_EQ(nearest("rule3", names), "rule1");
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
}

TEST(config, keeps_defaults_of_missing_keys) {
  const auto m = parse_machine("[l3]\nways = 8", "m.toml");
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->l3.ways, 8U);
  EXPECT_EQ(m->l3.size_bytes, machine_config{}.l3.size_bytes);
  EXPECT_TRUE(check_machine({}));
}

TEST(config, takes_whole_numbers_for_fractions) {
  const auto m = parse_machine("[l3]\nread_latency_ns = 15", "m.toml");
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->l3.read_latency_ns, 15);
}

struct mistake {
  const char* name;
  const char* text;
  std::vector<const char*> said;
};

void PrintTo(const mistake& m, std::ostream* out) {
  *out << m.text;
}

class mistakes : public testing::TestWithParam<mistake> {};

TEST_P(mistakes, are_told_with_file_line_key_and_what_to_do) {
  const std::string message = error_of(GetParam().text);
  for (const char* part : GetParam().said) EXPECT_THAT(message, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    config, mistakes,
    testing::Values(
        mistake{"no_toml", "[l3]\nways = = 3", {"m.toml:2: this is no TOML"}},
        mistake{"unknown_key",
                "[l3]\nways = 16\nread_latncy_ns = 3",
                {"m.toml:3: there is no key 'l3.read_latncy_ns'", "'l3.read_latency_ns'"}},
        mistake{"unknown_top_key", "nane = 'x'", {"m.toml:1: there is no key 'nane'", "'name'"}},
        mistake{
            "unknown_section", "\n[l4]\nways = 16", {"m.toml:2: there is no section 'l4'", "'l1'"}},
        mistake{
            "section_as_value", "l3 = 5", {"m.toml:1: l3 is a whole number; give a section, [l3]"}},
        mistake{"wrong_type",
                "[l3]\nways = '16'",
                {"m.toml:2: l3.ways is a string; give a whole number from 1"}},
        mistake{"fraction_for_whole", "[l3]\nways = 1.5", {"m.toml:2: l3.ways is a fraction"}},
        mistake{"string_for_number",
                "[l3]\nread_latency_ns = '3'",
                {"m.toml:2: l3.read_latency_ns is a string; give a number"}},
        mistake{"number_for_name",
                "[l3]\nreplacement = 3",
                {"m.toml:2: l3.replacement is a whole number; give one of lru"}},
        mistake{"number_for_bool",
                "[l3]\nnonvolatile = 1",
                {"m.toml:2: l3.nonvolatile is a whole number; give true or false"}},
        mistake{"value_for_list",
                "[volatile_memory]\ntiming = 3",
                {"m.toml:2: volatile_memory.timing is a whole number; give an array"}},
        mistake{"list_of_values",
                "[volatile_memory]\ntiming = [3]",
                {"m.toml:2: volatile_memory.timing", "array of tables"}},
        mistake{
            "no_ways", "[l3]\nways = 0", {"m.toml:2: l3.ways is 0; give a whole number from 1"}},
        mistake{"negative",
                "[l3]\nread_latency_ns = -1",
                {"m.toml:2: l3.read_latency_ns is -1; give a number from 0"}},
        mistake{"negative_whole", "[cores]\ncount = -8", {"m.toml:2: cores.count is -8"}},
        mistake{
            "not_a_number", "[l3]\nread_latency_ns = nan", {"m.toml:2: l3.read_latency_ns is nan"}},
        mistake{"infinite", "[l3]\nread_latency_ns = inf", {"m.toml:2: l3.read_latency_ns is inf"}},
        mistake{"no_banks",
                "[volatile_memory]\nbanks = 0",
                {"m.toml:2: volatile_memory.banks is 0; give a power of two"}},
        mistake{"odd_banks",
                "[volatile_memory]\nbanks = 6",
                {"m.toml:2: volatile_memory.banks is 6; give a power of two"}},
        mistake{"odd_row",
                "[volatile_memory]\nrow_bytes = 1000",
                {"m.toml:2: volatile_memory.row_bytes is 1000; give a power of two from 64"}},
        mistake{"share_above",
                "[design]\noverflow_at = 1.5",
                {"m.toml:2: design.overflow_at is 1.5; give a number from 0 to 1"}},
        mistake{"share_below",
                "[volatile_memory]\nwrite_drain_from = -0.1",
                {"m.toml:2: volatile_memory.write_drain_from is -0.1"}},
        mistake{"replacement",
                "[l1]\nreplacement = 'lrru'",
                {"m.toml:2: l1.replacement is 'lrru'", "'lru' (of lru, plru, bip, random)"}},
        mistake{"technology", "[volatile_memory]\ntechnology = 'mram'", {"m.toml:2", "'dram'"}},
        mistake{"scheduler",
                "[nonvolatile_memory]\nscheduler = 'frfcfs'",
                {"m.toml:2", "'frfcfs'", "'fr-fcfs'"}},
        mistake{"design", "[design]\nname = 'kilm'", {"m.toml:2", "'kilm'", "'kiln'"}},
        mistake{
            "order", "[design]\norder = 'stong'", {"m.toml:2", "'strong' (of strong, relaxed)"}},
        mistake{"isolation",
                "[design]\nisolation = 'mutexes'",
                {"m.toml:2", "'mutex' (of htm, mutex, none)"}},
        mistake{
            "ways_and_lines",
            "[l3]\nsize_bytes = 4096\nways = 3",
            {"m.toml:3: l3.ways is 3, which does not divide the lines", "multiple of 192 bytes"}},
        mistake{"part_of_a_line",
                "[l3]\nsize_bytes = 4100\nways = 1",
                {"m.toml:3: l3.ways", "multiple of 64 bytes"}},
        mistake{"odd_sets",
                "[l3]\nsize_bytes = 12582912\nways = 16",
                {"m.toml:2: l3.size_bytes is 12582912, which makes 12288 sets"}},
        mistake{"banks_and_sets",
                "[l1]\nsize_bytes = 512\nways = 8\nbanks = 2",
                {"m.toml:4: l1.banks is 2"}},
        mistake{"tree_of_ways",
                "[l1]\nsize_bytes = 24576\nways = 12\nreplacement = 'plru'",
                {"m.toml:4: l1.replacement is plru"}},
        mistake{"capacity",
                "[volatile_memory]\nbanks = 1024\ncapacity_bytes = 65536",
                {"m.toml:3: volatile_memory.capacity_bytes is 65536"}},
        mistake{"drain",
                "[volatile_memory]\nwrite_drain_to = 0.9",
                {"m.toml:2: volatile_memory.write_drain_to is 0.9, not below"}},
        mistake{"refresh",
                "[volatile_memory]\nrefresh_interval_ns = 100\nrefresh_time_ns = 100",
                {"m.toml:3: volatile_memory.refresh_time_ns"}},
        mistake{"mapping_field",
                "[volatile_memory]\nmapping = 'row-rank-bnk-column-channel'",
                {"m.toml:2", "'bnk'", "'bank'"}},
        mistake{"mapping_twice",
                "[volatile_memory]\nmapping = 'row-row-bank-column-channel'",
                {"m.toml:2", "has row twice"}},
        mistake{"mapping_lacks",
                "[volatile_memory]\nmapping = 'row-rank-bank-column'",
                {"m.toml:2", "lacks channel"}},
        mistake{"retention",
                "[volatile_memory]\ntechnology = 'pcm'\nretention = [{retention_s = 100, speedup = "
                "2}]\nlog_retention_s = 100",
                {"m.toml:3: volatile_memory.data_retention_s is 10000000", "rows for 100"}},
        mistake{"no_retention",
                "[volatile_memory]\ntechnology = 'pcm'",
                {"m.toml:2: volatile_memory.data_retention_s", "none"}},
        mistake{"retention_of_dram",
                "[volatile_memory]\nretention = [{retention_s = 100, speedup = 2}]",
                {"m.toml:2: volatile_memory.retention has no effect", "technology is dram"}},
        mistake{"iterations_of_dram",
                "[volatile_memory]\niterations = 3",
                {"m.toml:2: volatile_memory.iterations has no effect", "only pcm"}},
        mistake{"pulse_of_pcm",
                "[nonvolatile_memory]\ntechnology = 'pcm'\nwrite_pulse_ns = 5\nretention = "
                "[{retention_s = 1e7, speedup = 1}]",
                {"m.toml:3: nonvolatile_memory.write_pulse_ns has no effect", "iterations"}},
        mistake{"pulse_of_dram",
                "[volatile_memory]\nwrite_pulse_ns = 5",
                {"m.toml:2: volatile_memory.write_pulse_ns has no effect", "dram"}},
        mistake{"log_in_volatile_memory",
                "[volatile_memory]\ntechnology = 'pcm'\nlog_retention_s = 1e2\nretention = "
                "[{retention_s = 1e7, speedup = 1}, {retention_s = 1e2, speedup = 2}]",
                {"m.toml:3: volatile_memory.log_retention_s has no effect", "nonvolatile memory"}},
        mistake{"drain_of_fcfs",
                "[volatile_memory]\nscheduler = 'fcfs'\nwrite_drain_from = 0.7",
                {"m.toml:3: volatile_memory.write_drain_from has no effect",
                 "the scheduler fcfs serves requests in order of arrival"}},
        mistake{"drain_end_of_fcfs",
                "[volatile_memory]\nscheduler = 'fcfs'\nwrite_drain_to = 0.2",
                {"m.toml:3: volatile_memory.write_drain_to has no effect"}},
        mistake{"age_of_fcfs",
                "[nonvolatile_memory]\nscheduler = 'fcfs'\nage_limit_ns = 3",
                {"m.toml:3: nonvolatile_memory.age_limit_ns has no effect"}},
        mistake{"more_cores_than_run", "[cores]\ncount = 33", {"m.toml:2: cores.count is 33"}},
        mistake{"more_banks_than_run",
                "[volatile_memory]\nbank_groups = 16\nbanks = 32",
                {"m.toml:3: volatile_memory: 512 banks in a channel; at most 256"}},
        mistake{"rows_beyond_their_number",
                "[volatile_memory]\ncapacity_bytes = 1099511627776\nrow_bytes = 64\nbanks = 1",
                {"m.toml:2: volatile_memory: capacity_bytes makes more than 2^31 rows"}},
        mistake{"refresh_of_whole_interval",
                "[volatile_memory]\nclock_ns = 3\nrefresh_interval_ns = 8\nrefresh_time_ns = 7",
                {"m.toml:4: volatile_memory: refresh_time_ns is not below refresh_interval_ns"}},
        mistake{"refresh_within_a_cycle",
                "[volatile_memory]\nclock_ns = 3\nrefresh_interval_ns = 2",
                {"m.toml:3: volatile_memory: refresh_interval_ns is less than a cycle"}},
        mistake{"refresh_within_a_picosecond",
                "[volatile_memory]\nrefresh_interval_ns = 0.0004",
                {"m.toml:2: volatile_memory: refresh_interval_ns is less than a cycle"}},
        mistake{"clock_of_no_picosecond",
                "[volatile_memory]\nclock_ns = 0.0004",
                {"m.toml:2: volatile_memory: clock_ns is less than a picosecond"}},
        mistake{"age_of_no_picosecond",
                "[volatile_memory]\nage_limit_ns = 0.0004",
                {"m.toml:2: volatile_memory: age_limit_ns is less than a picosecond"}},
        mistake{"writes_of_pcm_that_wrap",
                "[nonvolatile_memory]\ntechnology = 'pcm'\niterations = 1e6\niteration_ns = 1e9\n"
                "retention = [{retention_s = 1e7, speedup = 1e-3}]",
                {"m.toml:3: nonvolatile_memory: iterations * iteration_ns / speedup is a second"}},
        mistake{
            "rules_between_ranks",
            "[volatile_memory]\ntiming = [{level = 'other_ranks', preceding = 'read', following = "
            "'read', latency_ns = 1, window = 2}]",
            {"m.toml:2: volatile_memory: timing rule other_ranks: read -> read counts several"}},
        mistake{"logs_over_volatile_memory",
                "[design]\nname = 'rlog'\nlog_bytes = 1099511627776",
                {"m.toml:3: design.log_bytes is 1099511627776, and the logs of 16 threads"}},
        mistake{"starvation_of_fcfs",
                "[nonvolatile_memory]\nscheduler = 'fcfs'\nstarvation_limit = 3",
                {"m.toml:3: nonvolatile_memory.starvation_limit has no effect"}},
        mistake{"guards_without_rules",
                "[nonvolatile_memory]\nscheduler = 'strict'\nguarded_rules = false",
                {"m.toml:3: nonvolatile_memory.guarded_rules has no effect", "no rule to guard"}},
        mistake{"one_rank_in_turn",
                "[volatile_memory]\nrefresh_interval_ns = 500\nstaggered_refresh = true",
                {"m.toml:3: volatile_memory.staggered_refresh has no effect", "one rank"}},
        mistake{"refresh_without_interval",
                "[volatile_memory]\nrefresh_time_ns = 5",
                {"m.toml:2: volatile_memory.refresh_time_ns has no effect", "interval_ns is 0"}},
        mistake{"way_of_refresh_without_interval",
                "[volatile_memory]\nrefresh = 'same-bank'",
                {"m.toml:2: volatile_memory.refresh has no effect", "interval_ns is 0"}},
        mistake{"current_without_voltage",
                "[volatile_memory]\nidd3n_all_banks = true",
                {"m.toml:2: volatile_memory.idd3n_all_banks has no effect", "vdd_v is 0"}},
        mistake{"voltage_without_current",
                "[volatile_memory]\nvdd_v = 1.1",
                {"m.toml:2: volatile_memory.vdd_v has no effect", "no current"}},
        mistake{"current_below_standby",
                "[volatile_memory]\nvdd_v = 1\nidd3n_ma = 60\nidd0_ma = 40\ntiming = [\n{level = "
                "'bank', preceding = 'activate', following = 'precharge', latency_ns = 30}]",
                {"m.toml:4: volatile_memory.idd0_ma makes its command cost -4800 pJ",
                 "less than standby"}},
        mistake{"rule_key",
                "[[volatile_memory.timing]]\nlevel = 'bank'\nprecedes = 'read'",
                {"m.toml:3: there is no key 'precedes'", "'preceding'", "volatile_memory.timing"}},
        mistake{"rule_level",
                "[[volatile_memory.timing]]\nlevel = 'ban'",
                {"m.toml:2: level is 'ban'", "'bank'"}},
        mistake{"rule_lacks",
                "[[volatile_memory.timing]]\nlevel = 'bank'\npreceding = 'read'",
                {"m.toml:1: volatile_memory.timing has an entry without following"}},
        mistake{"rule_latency",
                "[[volatile_memory.timing]]\nlatency_ns = -3",
                {"m.toml:2: latency_ns is -3"}},
        mistake{"rule_window", "[[volatile_memory.timing]]\nwindow = 0", {"m.toml:2: window is 0"}},
        mistake{"kiln_on_sram",
                "[design]\nname = 'kiln'",
                {"m.toml:2: design.name is kiln", "l3.nonvolatile is false"}},
        mistake{"base_of_wrong_type", "base = 3", {"m.toml:1: base is a whole number"}},
        mistake{"base_missing",
                "name = 'x'\nbase = 'nowhere.toml'",
                {"m.toml:2: base: cannot read the machine file nowhere.toml"}}),
    [](const auto& one) { return one.param.name; });

TEST(config, says_that_a_file_is_missing) {
  const auto m = load_machine("/nowhere/x.toml");
  ASSERT_FALSE(m);
  EXPECT_EQ(m.error().code, errc::not_found);
  EXPECT_THAT(m.error().message, HasSubstr("/nowhere/x.toml"));
}

TEST_F(files, build_on_others_beside_them) {
  write("a.toml", "name = 'a'\n[l3]\nways = 8\nbanks = 2");
  const auto m = load_machine(write("b.toml", "base = 'a.toml'\n[l3]\nbanks = 4"));
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_EQ(m->name, "a");
  EXPECT_EQ(m->l3.ways, 8U);
  EXPECT_EQ(m->l3.banks, 4U);
}

TEST_F(files, replace_a_list_of_their_base) {
  write("a.toml",
        "[[volatile_memory.timing]]\nlevel = 'bank'\npreceding = 'read'\nfollowing = 'write'");
  const auto m = load_machine(write("b.toml", "base = 'a.toml'\n[volatile_memory]\ntiming = []"));
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_TRUE(m->volatile_memory.timing.empty());
}

TEST_F(files, in_a_circle_are_an_error) {
  write("a.toml", "\nbase = 'b.toml'");
  const auto m = load_machine(write("b.toml", "base = 'a.toml'"));
  ASSERT_FALSE(m);
  EXPECT_THAT(m.error().message,
              AllOf(HasSubstr("a.toml:2: base leads back to"), HasSubstr("b.toml")));
}

TEST_F(files, tell_the_line_in_the_base_where_that_is_wrong) {
  const std::string base = write("a.toml", "[l3]\nsize_bytes = 4096");
  const std::string file = write("b.toml", "base = 'a.toml'\n\n[l3]\nways = 3");
  EXPECT_THAT(load_machine(file).error().message, StartsWith(file + ":4: l3.ways is 3"));
  write("a.toml", "[l3]\nwayz = 3");
  EXPECT_THAT(load_machine(file).error().message,
              StartsWith(base + ":2: there is no key 'l3.wayz'"));
}

TEST(config, sets_one_key_as_a_file_would) {
  machine_config m;
  EXPECT_TRUE(set_key(m, "l3.read_latency_ns", "30"));
  EXPECT_TRUE(set_key(m, "l3.replacement", "random"));
  EXPECT_TRUE(set_key(m, "l3.nonvolatile", "true"));
  EXPECT_TRUE(set_key(m, "name", "\"a b\""));
  EXPECT_TRUE(set_key(m, "source", "2013"));
  EXPECT_TRUE(set_key(m, "volatile_memory.retention", "[{retention_s = 100, speedup = 2}]"));
  EXPECT_EQ(m.l3.read_latency_ns, 30);
  EXPECT_EQ(m.l3.replacement, "random");
  EXPECT_TRUE(m.l3.nonvolatile);
  EXPECT_EQ(m.name, "a b");
  EXPECT_EQ(m.source, "2013");
  ASSERT_EQ(m.volatile_memory.retention.size(), 1U);
  EXPECT_EQ(m.volatile_memory.retention[0].speedup, 2);
}

TEST(config, sets_nothing_to_what_is_wrong) {
  machine_config m;
  const std::string before = toml_of(m);
  EXPECT_THAT(set_key(m, "l3.wayz", "3").error().message,
              HasSubstr("nearest right one is 'l3.ways'"));
  EXPECT_THAT(set_key(m, "l3.ways", "many").error().message,
              HasSubstr("l3.ways=many: l3.ways is a string"));
  EXPECT_THAT(set_key(m, "l3.ways", "0").error().message, HasSubstr("l3.ways is 0"));
  EXPECT_THAT(set_key(m, "l3.ways", "3\nl3 = 2").error().message, HasSubstr("l3.ways is a string"));
  EXPECT_THAT(set_key(m, "design.name", "native2").error().message, HasSubstr("'native'"));
  EXPECT_THAT(set_key(m, "l3", "2").error().message, HasSubstr("there is no key 'l3'"));
  EXPECT_EQ(toml_of(m), before);
}

TEST(config, checks_keys_together_when_all_are_set) {
  machine_config m;
  EXPECT_TRUE(set_key(m, "l3.ways", "12"));
  ASSERT_FALSE(check_machine(m));
  EXPECT_TRUE(set_key(m, "l3.size_bytes", "12582912"));
  EXPECT_TRUE(check_machine(m));
}

class presets : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(config, presets,
                         testing::Values("kiln", "kiln-sram-l3", "dp2", "ddr4-2400", "ddr4-3200",
                                         "ddr5-4800", "ddr5-4800-same-bank", "stt-mram", "pcm",
                                         "optane-like"));

TEST_P(presets, are_the_same_machine_after_an_echo) {
  const machine_config m = preset(GetParam());
  EXPECT_EQ(m.name, GetParam());
  const auto again = parse_machine(toml_of(m), "echo");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(toml_of(*again), toml_of(m));
  EXPECT_EQ(json_of(*again).dump(), json_of(m).dump());
}

TEST(config, presets_are_all_tested) {
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(configs))
    found += entry.path().extension() == ".toml";
  EXPECT_EQ(found, 10U);
}

TEST(config, echoes_odd_strings_and_numbers_exactly) {
  machine_config m;
  m.name = "a \"b\" \\ \n\t\x01\x7f é";
  m.l3.read_latency_ns = 0.1 + 0.2;
  m.volatile_memory.capacity_bytes = std::uint64_t{1} << 40;
  const auto again = parse_machine(toml_of(m), "echo");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->name, m.name);
  EXPECT_EQ(again->l3.read_latency_ns, m.l3.read_latency_ns);
  EXPECT_EQ(again->volatile_memory.capacity_bytes, m.volatile_memory.capacity_bytes);
}

TEST(config, echoes_every_key) {
  machine_config m = preset("dp2");
  const nlohmann::ordered_json j = json_of(m);
  for (const config_key& k : keys_of(m)) {
    std::string pointer = "/" + k.path;
    std::ranges::replace(pointer, '.', '/');
    EXPECT_TRUE(j.contains(nlohmann::ordered_json::json_pointer(pointer))) << k.path;
  }
  EXPECT_EQ(j["nonvolatile_memory"]["retention"][3]["speedup"], 1.7);
}

TEST(kiln_preset, has_the_latencies_of_table_2) {
  const memory_config c = preset("kiln").nonvolatile_memory;
  const double closing = wait_ns(c, "precharge", "activate");
  EXPECT_EQ(c.read_latency_ns, 25);
  EXPECT_EQ(closing + wait_ns(c, "activate", "read") + c.read_latency_ns, 65);
  EXPECT_EQ(c.write_latency_ns, 25);
  EXPECT_TRUE(c.write_back_rows);  // the pulse is before the precharge
  EXPECT_EQ(c.write_pulse_ns + closing + wait_ns(c, "activate", "write") + c.write_latency_ns, 76);
}

// K2: core, thread, transaction, state.
TEST(kiln_preset, has_tags_of_fourteen_more_bits) {
  machine_config m = preset("kiln");
  EXPECT_EQ(m.design.transaction_ids, 256U);
  EXPECT_EQ(tag_bits(m), 3U + 1 + 8 + 2);
  m.design.transaction_ids = 257;
  EXPECT_EQ(tag_bits(m), 15U);
}

// K1
TEST(kiln_preset, has_the_caches_of_table_2) {
  const machine_config b = preset("kiln"), a = preset("kiln-sram-l3");
  EXPECT_EQ(b.cores.count * b.cores.threads_per_core, 16U);
  EXPECT_EQ(b.l3.size_bytes, 64U << 20);
  EXPECT_EQ(a.l3.size_bytes, 16U << 20);
  EXPECT_EQ(b.l3.write_latency_ns, 19);
  EXPECT_EQ(a.l3.write_latency_ns, 10);
  EXPECT_EQ(a.l2.persistence_queue_entries, 16U);
  EXPECT_EQ(b.l3.persistence_queue_entries, 128U);
  EXPECT_FALSE(a.l3.nonvolatile);
}

// D4
TEST(dp2_preset, has_the_retentions_of_table_1) {
  const memory_config c = preset("dp2").nonvolatile_memory;
  EXPECT_EQ(c.ranks * c.banks, 32U);
  EXPECT_EQ(c.bank_queue_entries, 32U);
  ASSERT_EQ(c.retention.size(), 6U);
  EXPECT_EQ(c.retention.front().speedup, 1);
  EXPECT_EQ(c.retention.back().retention_s, 100);
  EXPECT_EQ(c.retention.back().speedup, 2.1);
}

// The page has a heading for each section and a row for each key: | `key` | unit | meaning |
// default |.
class page {
 public:
  page() {
    std::ifstream in(STELE_SOURCE_DIR "/docs/format/machine.md");
    for (std::string line, heading; std::getline(in, line);) {
      if (line.starts_with("## ")) heading = line;
      if (line.starts_with("| `")) rows_.emplace_back(heading, line);
    }
  }
  // The table row of a key under the heading of its section; empty when there is none.
  std::string row(const std::string& section, const std::string& key) const {
    for (const auto& [heading, line] : rows_)
      if (heading.find('`' + section + '`') != heading.npos &&
          line.starts_with("| `" + key + "` |"))
        return line;
    return {};
  }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

std::string default_text(const nlohmann::ordered_json& v) {
  if (v.is_number_float()) return fmt::format("{}", v.get<double>());
  return v.is_string() && !v.empty() && v != "" ? v.get<std::string>() : v.dump();
}

TEST(documentation, has_every_key_with_its_default) {
  machine_config m;
  const page documented;
  const auto defaults = json_of(m);
  for (const config_key& k : keys_of(m)) {
    const std::size_t dot = k.path.find('.');
    const bool inside = dot != k.path.npos;
    const std::string section = inside ? k.path.substr(0, dot) : "machine",
                      name = inside ? k.path.substr(dot + 1) : k.path;
    const std::string row = documented.row(section, name);
    const std::string standard = default_text(inside ? defaults[section][name] : defaults[name]);
    ASSERT_FALSE(row.empty()) << k.path << " is not on the page";
    EXPECT_THAT(row.substr(row.rfind('|', row.size() - 2)), HasSubstr(' ' + standard + ' '))
        << k.path;
  }
  timing_rule rule;
  for (const config_key& k : keys_of(rule))
    EXPECT_NE(documented.row("timing", k.path), "") << k.path;
  retention_row row;
  for (const config_key& k : keys_of(row))
    EXPECT_NE(documented.row("retention", k.path), "") << k.path;
}

}  // namespace
}  // namespace stele::sim
