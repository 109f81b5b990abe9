"""What Redis does with replays, each in one step. Records are in the order in which they came, by Redis' own clock in microseconds."""

from __future__ import annotations

from typing import Final

KEEP: Final = """
local prefix, most, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time, index = redis.call('TIME'), KEYS[1]
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local function lives(key)
  if ttl > 0 then redis.call('EXPIRE', key, ttl) else redis.call('PERSIST', key) end
end
for i = 4, #ARGV, 4 do
  local id, session = ARGV[i], ARGV[i + 1]
  local key, score = prefix .. 'r:' .. id, now + i
  redis.call('HSET', key, 'session', session, 'columns', ARGV[i + 2], 'record', ARGV[i + 3])
  lives(key)
  lives(prefix .. 'o:' .. id)
  redis.call('ZADD', index, score, id)
  if session ~= '' then
    redis.call('ZADD', prefix .. 's:' .. session, score, id)
    lives(prefix .. 's:' .. session)
  end
end
if ttl > 0 then redis.call('ZREMRANGEBYSCORE', index, '-inf', now - ttl * 1000000) end
local over = math.min(redis.call('ZCARD', index) - most, 1000)
if over > 0 then
  for _, id in ipairs(redis.call('ZRANGE', index, 0, over - 1)) do
    local session = redis.call('HGET', prefix .. 'r:' .. id, 'session')
    if session and session ~= '' then redis.call('ZREM', prefix .. 's:' .. session, id) end
    redis.call('DEL', prefix .. 'r:' .. id, prefix .. 'o:' .. id)
  end
  redis.call('ZREMRANGEBYRANK', index, 0, over - 1)
end
return 1
"""
"""KEYS: the index. ARGV: prefix, most records, seconds that they live (0: for ever), then id, digest of the session, columns and record of each."""

NEWEST: Final = """
local ttl, time = tonumber(ARGV[1]), redis.call('TIME')
if ttl > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', (tonumber(time[1]) - ttl) * 1000000) end
return redis.call('ZREVRANGE', KEYS[1], 0, -1)
"""
"""KEYS: the index. ARGV: seconds that records live. Answers all ids, the newest first."""

OUTCOME: Final = """
local prefix, replay, key, outcome, early, seconds = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local ttl = redis.call('TTL', prefix .. 'r:' .. replay)
if ttl == -2 and early ~= '1' then return {'missing', ''} end
if key ~= '' then
  local known = redis.call('GET', prefix .. 'k:' .. key)
  if known then return {'known', known} end
  redis.call('SET', prefix .. 'k:' .. key, outcome, 'EX', seconds)
end
redis.call('RPUSH', prefix .. 'o:' .. replay, outcome)
if ttl == -2 then
  redis.call('EXPIRE', prefix .. 'o:' .. replay, 3600)
elseif ttl > 0 then
  redis.call('EXPIRE', prefix .. 'o:' .. replay, ttl)
end
return {'new', outcome}
"""
"""ARGV: prefix, replay, digest of the idempotency key ("" for none), outcome, "1" if the record may come later (within an hour), seconds that the
idempotency key is known."""
