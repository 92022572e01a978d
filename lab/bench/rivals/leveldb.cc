// LevelDB on the workload `store`.
//
// Settings: WriteOptions::sync on media "file" (every put fdatasyncs its log), without it elsewhere
// (a system call writes the log, so it survives the process). A write buffer of 64 MiB instead of
// 4, a block cache of 256 MiB instead of 8, a Bloom filter of 10 bits per key, as its documentation
// recommends for random reads. No compression, because these values would compress to almost
// nothing. It compacts in its own thread. LevelDB itself merges concurrent puts into groups.
#include <bench/rivals/store_rival.h>

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

namespace stele::bench {
namespace {

using workloads::operation;

leveldb::Slice slice(std::string_view s) {
  return {s.data(), s.size()};
}

class leveldb_engine final : public store_engine {
 public:
  static constexpr const char* name = "leveldb";

  static result<std::unique_ptr<leveldb_engine>> open(const store_settings& s) {
    auto e = std::unique_ptr<leveldb_engine>(new leveldb_engine(s));
    leveldb::DB* db = nullptr;
    if (const auto status = leveldb::DB::Open(e->options_, s.path, &db); !status.ok())
      return engine_failed(name, "opening", status.ToString());
    e->db_.reset(db);
    return e;
  }

  result<> apply(std::span<const operation> ops) override { return write(ops, write_); }
  result<> fill(std::span<const operation> puts) override { return write(puts, {}); }
  result<> filled() override { return write({}, write_); }  // a synced batch syncs the log
  result<> write(std::span<const operation> ops, const leveldb::WriteOptions& how) {
    static thread_local std::string value;
    static thread_local leveldb::WriteBatch batch;
    batch.Clear();
    for (const operation& op : ops) {
      const workloads::store::key key(op.a);
      if (op.what == operation::kind::put)
        batch.Put(slice(key), slice(workloads::store::value(op.b, value_bytes_, value)));
      else
        batch.Delete(slice(key));
    }
    const auto status = db_->Write(how, &batch);
    return status.ok() ? result<>{} : engine_failed(name, "writing", status.ToString());
  }
  result<bool> get(std::uint64_t number, std::string& into) override {
    const auto status = db_->Get({}, slice(workloads::store::key(number)), &into);
    if (!status.ok() && !status.IsNotFound())
      return engine_failed(name, "reading", status.ToString());
    return status.ok();
  }
  std::optional<std::uint64_t> space_bytes() override { return bytes_below(path_); }

 private:
  explicit leveldb_engine(const store_settings& s)
      : path_(s.path),
        value_bytes_(s.value_bytes),
        cache_(leveldb::NewLRUCache(std::size_t{256} << 20)),
        filter_(leveldb::NewBloomFilterPolicy(10)) {
    options_.create_if_missing = true;
    options_.compression = leveldb::kNoCompression;
    options_.write_buffer_size = std::size_t{64} << 20;
    options_.block_cache = cache_.get();
    options_.filter_policy = filter_.get();
    write_.sync = s.sync;
  }

  const std::string path_;
  const std::size_t value_bytes_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  leveldb::Options options_;
  leveldb::WriteOptions write_;
  std::unique_ptr<leveldb::DB> db_;  // destroyed before the members that it uses
};

}  // namespace

contender_result make_leveldb(const task& t) {
  return make_store_rival<leveldb_engine>(t);
}

}  // namespace stele::bench
