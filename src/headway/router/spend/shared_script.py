"""The decision about one budget as Redis makes it: what all routers spent and hold back, and whether this request fits."""

from __future__ import annotations

from typing import Final

MONTH_START: Final = """
local function month_start(day)
  local z = day + 719468
  local in_era = z % 146097
  local year = math.floor((in_era - math.floor(in_era / 1460) + math.floor(in_era / 36524) - math.floor(in_era / 146096)) / 365)
  local in_year = in_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * in_year + 2) / 153)
  return day - (in_year - math.floor((153 * month + 2) / 5))
end
"""
"""The first day of the month of a day; days are counted from 1970-01-01. The calendar is reckoned from March of the year 0, in eras of 400 years."""

BUDGET: Final = (
    MONTH_START
    + """
local spent_key, held_key, process, version, own = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local lease, per, amount, sure, likely = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local now = tonumber(redis.call('TIME')[1])
local today = math.floor(now / 86400)
local starts = {day = today, week = today - (today + 3) % 7, month = month_start(today), total = 0}

local held, all = 0, redis.call('HGETALL', held_key)
for i = 1, #all, 2 do
  local its_version, its_held, until_ = string.match(all[i + 1], '^(%d+) (%d+) (%d+)$')
  if all[i] == process then
    if tonumber(its_version) > version then return {-1, 0, 0, 0, now} end
  elseif tonumber(until_) < now then
    redis.call('HDEL', held_key, all[i])
  else
    held = held + tonumber(its_held)
  end
end
held = held + own

local ttl = redis.call('TTL', spent_key)
for i = 9, #ARGV, 2 do
  local field = ARGV[i] .. ':' .. process
  local before = redis.call('HGET', spent_key, field)
  if not before or tonumber(before) < tonumber(ARGV[i + 1]) then redis.call('HSET', spent_key, field, ARGV[i + 1]) end
end
if per == 'total' then
  redis.call('PERSIST', spent_key)
elseif ttl ~= -1 then
  redis.call('EXPIRE', spent_key, 3456000)
end

local spent = 0
all = redis.call('HGETALL', spent_key)
for i = 1, #all, 2 do
  local day = tonumber(string.match(all[i], '^(%d+):'))
  if day >= starts[per] then
    spent = spent + tonumber(all[i + 1])
  elseif day < today - 62 and ttl ~= -1 then
    redis.call('HDEL', spent_key, all[i])
  end
end

local granted, reserved, left = 0, 0, amount - spent - held
if amount >= 0 and left > 0 and sure <= left then
  granted, reserved = 1, math.min(likely, left)
end
redis.call('HSET', held_key, process, string.format('%d %.0f %d', version, own + reserved, now + lease))
redis.call('EXPIRE', held_key, 2 * lease)
return {granted, reserved, spent, held, now}
"""
)
"""KEYS: a hash `day:process` -> what that process spent on that day, and a hash `process` -> `version held until`. Money is in whole billionths.

ARGV: process, version (grows with each call of the process for this budget: what comes late changes nothing), what the process holds back now, seconds
until that is forgotten unless it is said again, the period, the budget (-1: nothing is asked for), what the request costs for sure and likely, then
(day, the process' total of that day) in pairs. Totals only grow, so that saying them twice, or again to a Redis that lost them, counts them once.

Answers granted (-1: a later call was here first), what is held back for the request, all that is spent in the period and was held back before, and the
seconds of Redis' clock.
"""
