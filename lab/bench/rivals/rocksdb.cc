// RocksDB on the workload `store`.
//
// Settings: WriteOptions::sync on media "file" (every put syncs its log), without it elsewhere (a
// system call writes the log, so it survives the process). Log files are recycled, so that a sync
// of the log need not write the file's size. A write buffer of 64 MiB, two threads for flushes and
// compactions, a block cache of 256 MiB, a Bloom filter of 10 bits per key, a hash index in data
// blocks, as its tuning guide recommends for point lookups. No compression, because these values
// would compress to almost nothing; no statistics. Concurrent puts go into one memtable at once and
// share syncs (its defaults), with the pipelined write of the guide.
#include <bench/rivals/store_rival.h>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

namespace stele::bench {
namespace {

using workloads::operation;

rocksdb::Slice slice(std::string_view s) {
  return {s.data(), s.size()};
}

rocksdb::Options options_for(const store_settings& s) {
  rocksdb::Options o;
  o.create_if_missing = true;
  o.compression = rocksdb::kNoCompression;
  o.write_buffer_size = std::size_t{64} << 20;
  o.max_background_jobs = 2;
  o.recycle_log_file_num = 4;
  o.enable_pipelined_write = s.threads > 1;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(std::size_t{256} << 20);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return o;
}

class rocksdb_engine final : public store_engine {
 public:
  static constexpr const char* name = "rocksdb";

  static result<std::unique_ptr<rocksdb_engine>> open(const store_settings& s) {
    rocksdb::DB* db = nullptr;
    if (const auto status = rocksdb::DB::Open(options_for(s), s.path, &db); !status.ok())
      return engine_failed(name, "opening", status.ToString());
    return std::unique_ptr<rocksdb_engine>(new rocksdb_engine(s, db));
  }

  result<> apply(std::span<const operation> ops) override { return write(ops, write_); }
  result<> fill(std::span<const operation> puts) override { return write(puts, {}); }
  result<> filled() override {
    const auto status = write_.sync ? db_->SyncWAL() : rocksdb::Status();
    return status.ok() ? result<>{} : engine_failed(name, "syncing", status.ToString());
  }
  result<> write(std::span<const operation> ops, const rocksdb::WriteOptions& how) {
    static thread_local std::string value;
    static thread_local rocksdb::WriteBatch batch;
    batch.Clear();
    rocksdb::Status status;
    for (const operation& op : ops) {
      const workloads::store::key key(op.a);
      status =
          op.what == operation::kind::put
              ? batch.Put(slice(key), slice(workloads::store::value(op.b, value_bytes_, value)))
              : batch.Delete(slice(key));
      if (!status.ok()) return engine_failed(name, "gathering", status.ToString());
    }
    status = db_->Write(how, &batch);
    return status.ok() ? result<>{} : engine_failed(name, "writing", status.ToString());
  }
  result<bool> get(std::uint64_t number, std::string& into) override {
    static thread_local rocksdb::PinnableSlice found;
    const auto status =
        db_->Get(read_, db_->DefaultColumnFamily(), slice(workloads::store::key(number)), &found);
    if (!status.ok() && !status.IsNotFound())
      return engine_failed(name, "reading", status.ToString());
    if (status.ok()) into.assign(found.data(), found.size());
    found.Reset();  // it would hold a block of the cache, which this thread may outlive
    return status.ok();
  }
  std::optional<std::uint64_t> space_bytes() override { return bytes_below(path_); }

 private:
  rocksdb_engine(const store_settings& s, rocksdb::DB* db)
      : path_(s.path), value_bytes_(s.value_bytes), db_(db) {
    write_.sync = s.sync;
  }

  const std::string path_;
  const std::size_t value_bytes_;
  rocksdb::WriteOptions write_;
  rocksdb::ReadOptions read_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

contender_result make_rocksdb(const task& t) {
  return make_store_rival<rocksdb_engine>(t);
}

}  // namespace stele::bench
