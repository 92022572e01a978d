// Another module, which has a value of a key saved and loaded again as that of no key. The
// functions are declared from the documentation of Redis' module interface. test_restore.py loads
// it.
#include <stddef.h>

typedef struct context context;
typedef struct text text;
typedef struct key key;
typedef struct type type;

static int (*CreateCommand)(context*, const char*, int (*)(context*, text**, int), const char*, int,
                            int, int);
static void (*SetModuleAttribs)(context*, const char*, int, int);
static void (*SetModuleOptions)(context*, int);
static key* (*OpenKey)(context*, text*, int);
static void (*CloseKey)(key*);
static type* (*ModuleTypeGetType)(key*);
static void* (*ModuleTypeGetValue)(key*);
static text* (*SaveDataTypeToString)(context*, void*, type*);
static void* (*LoadDataTypeFromString)(const text*, type*);
static void (*FreeString)(context*, text*);
static int (*ReplyWithLongLong)(context*, long long);

// OTHER.LOADS key: whether what it has can be loaded.
static int loads(context* c, text** arguments, int count) {
  (void)count;
  key* const k = OpenKey(c, arguments[1], 1);
  type* const t = ModuleTypeGetType(k);
  text* const saved = SaveDataTypeToString(c, ModuleTypeGetValue(k), t);
  const int is_loaded = LoadDataTypeFromString(saved, t) != NULL;
  FreeString(c, saved);
  CloseKey(k);
  return ReplyWithLongLong(c, is_loaded);
}

__attribute__((visibility("default"))) int RedisModule_OnLoad(context* c, void** arguments,
                                                              int count) {
  (void)arguments, (void)count;
  int (*const get)(const char*, void*) = *(int (**)(const char*, void*))c;
#define FETCH(name) \
  if (get("RedisModule_" #name, (void*)&name) != 0) return 1
  FETCH(CreateCommand);
  FETCH(SetModuleAttribs);
  FETCH(SetModuleOptions);
  FETCH(OpenKey);
  FETCH(CloseKey);
  FETCH(ModuleTypeGetType);
  FETCH(ModuleTypeGetValue);
  FETCH(SaveDataTypeToString);
  FETCH(LoadDataTypeFromString);
  FETCH(FreeString);
  FETCH(ReplyWithLongLong);
  SetModuleAttribs(c, "other", 1, 1);
  SetModuleOptions(c, 1);
  return CreateCommand(c, "other.loads", loads, "readonly", 1, 1, 1);
}
