// The part of Redis' module interface that Stele uses, declared from its documentation ("Modules
// API reference", Redis 7.0). A server gives the functions by name when it loads a module, so
// nothing of Redis is needed to build. Valkey has the same interface under the same names.
//
// All functions are the server's; unless said otherwise they are called from its main thread.
#pragma once

#include <cstddef>
#include <cstdint>

struct RedisModuleCtx;

namespace stele::redis::api {

using context = RedisModuleCtx;
struct key;
struct text;  // a string of the server
struct type;
struct io;
struct blocked_client;
struct reply;
struct filter;
struct filter_context;
struct info;
struct digest;
struct key_context;
struct user;
struct scan_cursor;

constexpr int ok = 0, failed = 1;
constexpr int interface_version = 1;

// Modes of OpenKey.
constexpr int for_reading = 1 << 0, for_writing = 1 << 1, without_touch = 1 << 16;
// What KeyType answers.
constexpr int empty_key = 0, string_key = 1, list_key = 2, hash_key = 3, set_key = 4,
              sorted_set_key = 5, module_key = 6;
// What ACLCheckKeyPermissions asks for.
constexpr int key_access = 1 << 4, key_insert = 1 << 6;
// What SetModuleOptions takes: a load that finds the end of its payload, or a damaged one, fails,
// and the server does not end; a key that was open for writing does not count as changed by itself.
constexpr int handles_io_errors = 1 << 0, no_implicit_signal = 1 << 1;
// What CallReplyType answers.
constexpr int reply_string = 0, reply_error = 1, reply_array = 3;
constexpr long long no_expire = -1;

// What GetContextFlags answers, as bits.
constexpr int in_script = 1 << 0, in_multi = 1 << 1, is_replica = 1 << 3, is_cluster = 1 << 5,
              has_aof = 1 << 6, is_replicated = 1 << 12, is_loading = 1 << 13,
              denies_blocking = 1 << 21, speaks_resp3 = 1 << 22;

// Classes of keyspace events, as bits.
constexpr int event_generic = 1 << 2, event_string = 1 << 3, event_list = 1 << 4,
              event_set = 1 << 5, event_hash = 1 << 6, event_sorted_set = 1 << 7,
              event_expired = 1 << 8, event_evicted = 1 << 9, event_loaded = 1 << 12;

struct event {
  std::uint64_t number, version;
};
constexpr event flush_event{2, 1}, loading_event{3, 1}, shutdown_event{5, 1}, cron_event{8, 1},
    swap_event{11, 1}, fork_event{13, 1}, loop_event{15, 1};
constexpr std::uint64_t flush_begins = 0;
constexpr std::uint64_t loading_rdb = 0, loading_ended = 3, loading_failed = 4;
constexpr std::uint64_t child_born = 0;
constexpr std::uint64_t before_sleep = 0;

struct flush_details {
  std::uint64_t version;
  std::int32_t sync;      // in the main thread
  std::int32_t database;  // -1: all
};
struct swap_details {
  std::uint64_t version;
  std::int32_t first, second;
};

using command_function = int (*)(context*, text** arguments, int count);
using event_function = void (*)(context*, event, std::uint64_t what, void* details);
using notification_function = int (*)(context*, int classes, const char* name, text* key);
using filter_function = void (*)(filter_context*);
using scan_function = void (*)(context*, text* name, key*, void* data);
using info_function = void (*)(info*, int for_crash_report);

// The calls that the server makes of values of a type.
struct type_methods {
  std::uint64_t version = 4;
  void* (*load)(io*, int encoding) = nullptr;
  void (*save)(io*, void* value) = nullptr;
  void (*rewrite)(io*, text* key, void* value) = nullptr;
  std::size_t (*memory)(const void* value) = nullptr;
  void (*add_to_digest)(digest*, void* value) = nullptr;
  void (*free)(void* value) = nullptr;  // perhaps in another thread
  int (*aux_load)(io*, int encoding, int when) = nullptr;
  void (*aux_save)(io*, int when) = nullptr;
  int aux_save_triggers = 0;
  std::size_t (*free_effort)(text* key, const void* value) = nullptr;
  void (*unlinked)(text* key, const void* value) = nullptr;
  void* (*copy)(text* from, text* to, const void* value) = nullptr;
  int (*defragment)(void*, text* key, void** value) = nullptr;
  std::size_t (*memory_of_key)(key_context*, const void* value, std::size_t samples) = nullptr;
  std::size_t (*free_effort_of_key)(key_context*, const void* value) = nullptr;
  void (*unlinked_from)(key_context*, const void* value) = nullptr;
  void* (*copy_to)(key_context*, const void* value) = nullptr;
};

// The functions, as X(type of the answer, name, parameters). Each is RedisModule_<name> there.
#define STELE_REDIS_FUNCTIONS(X)                                                                \
  X(void, SetModuleAttribs, (context*, const char* name, int version, int interface))           \
  X(int, CreateCommand,                                                                         \
    (context*, const char* name, command_function, const char* flags, int first, int last,      \
     int step))                                                                                 \
  X(void, Log, (context*, const char* level, const char* format, ...))                          \
  X(void, Free, (void*))                                                                        \
  X(void*, TryAlloc, (std::size_t)) /* null: no memory */                                       \
  X(float, GetUsedMemoryRatio, ())  /* of `maxmemory`; 0: there is none */                      \
  X(int, GetLRU, (key*, long long* idle_ms))                                                    \
  X(int, GetLFU, (key*, long long* frequency))                                                  \
  X(int, ReplyWithLongLong, (context*, long long))                                              \
  X(int, ReplyWithError, (context*, const char*))                                               \
  X(int, ReplyWithSimpleString, (context*, const char*))                                        \
  X(int, ReplyWithArray, (context*, long))                                                      \
  X(int, ReplyWithMap, (context*, long))                                                        \
  X(int, ReplyWithStringBuffer, (context*, const char*, std::size_t))                           \
  X(int, ReplyWithSet, (context*, long))                                                        \
  X(int, ReplyWithDouble, (context*, double))                                                   \
  X(int, ReplyWithNullArray, (context*))                                                        \
  X(int, ReplyWithNull, (context*))                                                             \
  X(int, ReplyWithCallReply, (context*, reply*))                                                \
  X(reply*, Call, (context*, const char* command, const char* format, ...))                     \
  X(void, FreeCallReply, (reply*))                                                              \
  X(int, CallReplyType, (reply*))                                                               \
  X(const char*, CallReplyStringPtr, (reply*, std::size_t*))                                    \
  X(std::size_t, CallReplyLength, (reply*))                                                     \
  X(long long, CallReplyInteger, (reply*))                                                      \
  X(reply*, CallReplyArrayElement, (reply*, std::size_t))                                       \
  X(int, Replicate, (context*, const char* command, const char* format, ...))                   \
  X(int, GetSelectedDb, (context*))                                                             \
  X(int, SelectDb, (context*, int))                                                             \
  X(unsigned long long, DbSize, (context*))                                                     \
  X(scan_cursor*, ScanCursorCreate, ())                                                         \
  X(void, ScanCursorDestroy, (scan_cursor*))                                                    \
  X(int, Scan, (context*, scan_cursor*, scan_function, void* data)) /* 0: that was all */       \
  X(int, IsKeysPositionRequest, (context*))                                                     \
  X(void, KeyAtPos, (context*, int place))                                                      \
  X(key*, OpenKey, (context*, text * name, int mode))                                           \
  X(void, CloseKey, (key*))                                                                     \
  X(int, KeyType, (key*))                                                                       \
  X(void, SetModuleOptions, (context*, int options))                                            \
  X(int, SignalModifiedKey, (context*, text * name))                                            \
  X(int*, GetCommandKeys, (context*, text * *arguments, int count, int* keys))                  \
  X(int, StringSet, (key*, text*))                                                              \
  X(char*, StringDMA, (key*, std::size_t* size, int mode))                                      \
  X(int, ZsetAdd, (key*, double score, text*, int* flags))                                      \
  X(int, DeleteKey, (key*))                                                                     \
  X(long long, GetAbsExpire, (key*))                                                            \
  X(int, SetAbsExpire, (key*, long long))                                                       \
  X(int, ModuleTypeSetValue, (key*, type*, void*))                                              \
  X(int, ModuleTypeReplaceValue, (key*, type*, void* value, void** old))                        \
  X(type*, ModuleTypeGetType, (key*))                                                           \
  X(void*, ModuleTypeGetValue, (key*))                                                          \
  X(const char*, StringPtrLen, (const text*, std::size_t*))                                     \
  X(text*, CreateString, (context*, const char*, std::size_t))                                  \
  X(void, FreeString, (context*, text*))                                                        \
  X(type*, CreateDataType, (context*, const char* name, int encoding, type_methods*))           \
  X(void, SaveUnsigned, (io*, std::uint64_t))                                                   \
  X(std::uint64_t, LoadUnsigned, (io*))                                                         \
  X(void, SaveStringBuffer, (io*, const char*, std::size_t))                                    \
  X(char*, LoadStringBuffer, (io*, std::size_t*))                                               \
  X(void, EmitAOF, (io*, const char* command, const char* format, ...))                         \
  X(int, IsIOError, (io*))                                                                      \
  X(void, LogIOError, (io*, const char* level, const char* format, ...))                        \
  X(const text*, GetKeyNameFromIO, (io*))                                                       \
  X(int, GetDbIdFromIO, (io*))                                                                  \
  X(const text*, GetToKeyNameFromOptCtx, (key_context*))                                        \
  X(int, GetToDbIdFromOptCtx, (key_context*))                                                   \
  X(void, DigestAddStringBuffer, (digest*, const char*, std::size_t))                           \
  X(void, DigestEndSequence, (digest*))                                                         \
  X(int, SubscribeToKeyspaceEvents, (context*, int classes, notification_function))             \
  X(int, NotifyKeyspaceEvent, (context*, int class_, const char* name, text* key))              \
  X(int, SubscribeToServerEvent, (context*, event, event_function))                             \
  X(filter*, RegisterCommandFilter, (context*, filter_function, int flags))                     \
  X(int, CommandFilterArgsCount, (filter_context*))                                             \
  X(text*, CommandFilterArgGet, (filter_context*, int))                                         \
  X(int, CommandFilterArgReplace, (filter_context*, int, text*))                                \
  X(int, CommandFilterArgInsert, (filter_context*, int, text*))                                 \
  X(text*, GetClientUserNameById, (context*, std::uint64_t id)) /* null: nobody, as a master */ \
  X(user*, GetModuleUserFromUserName, (text*))                                                  \
  X(void, FreeModuleUser, (user*))                                                              \
  X(int, ACLCheckCommandPermissions, (user*, text * *arguments, int count))                     \
  X(int, ACLCheckKeyPermissions, (user*, text * key, int flags))                                \
  X(unsigned long long, GetClientId, (context*))                                                \
  X(int, GetContextFlags, (context*))                                                           \
  X(long long, Milliseconds, ())                                                                \
  X(blocked_client*, BlockClient,                                                               \
    (context*, command_function on_reply, command_function on_timeout,                          \
     void (*free)(context*, void*), long long timeout_ms))                                      \
  X(blocked_client*, BlockClientOnKeys,                                                         \
    (context*, command_function on_ready, command_function on_timeout,                          \
     void (*free)(context*, void*), long long timeout_ms, text** keys, int count, void* data))  \
  X(text*, GetBlockedClientReadyKey, (context*))  /* in on_ready */                             \
  X(int, UnblockClient, (blocked_client*, void*)) /* from any thread */                         \
  X(context*, GetThreadSafeContext, (blocked_client*))                                          \
  X(void, FreeThreadSafeContext, (context*))                                                    \
  X(int, RegisterInfoFunc, (context*, info_function))                                           \
  X(int, InfoAddSection, (info*, const char*))                                                  \
  X(int, InfoAddFieldCString, (info*, const char* field, const char*))                          \
  X(int, InfoAddFieldULongLong, (info*, const char* field, unsigned long long))

#define STELE_REDIS_DECLARE(answer, name, parameters) inline answer(*name) parameters = nullptr;
STELE_REDIS_FUNCTIONS(STELE_REDIS_DECLARE)
#undef STELE_REDIS_DECLARE

// Fetches all functions. Null on success, else the name of one that the server does not have.
const char* fetch(context* of);

}  // namespace stele::redis::api
