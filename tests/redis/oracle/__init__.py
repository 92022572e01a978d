"""The differential fuzzer of Redis with the module beside stock Redis; tests/redis/differential runs it."""
