"""SharedModelMemory: the model that each session has, in Redis: whichever router a session meets, it keeps it."""

from __future__ import annotations

from typing import Final

from headway.router.selection.affinity.memory import ModelMemory, Turn
from headway.router.stores.redis_link import RedisLink

_MODEL: Final = """
local decision, proposed, least, idle, dry, close = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6])
local found = redis.call('HMGET', KEYS[1], 'decision', 'model', 'turns')
local model, turns = proposed, 0
if found[1] == decision then
  local had = tonumber(found[3])
  for i = 7, #ARGV do
    if ARGV[i] == found[2] and (i - 6 <= close or had < least) then model, turns = found[2], had end
  end
end
if dry == '0' then
  redis.call('HSET', KEYS[1], 'decision', decision, 'model', model, 'turns', turns + 1)
  redis.call('EXPIRE', KEYS[1], idle)
end
return {model, turns + 1}
"""
"""ARGV: decision, proposed model, fewest turns, seconds, "1" to note nothing, how many of the models that follow are close; they and the others."""


class SharedModelMemory:
    """While Redis does not answer, sessions keep the model that this router saw them with last."""

    def __init__(self, link: RedisLink, prefix: str) -> None:
        self._link, self._prefix = link, prefix + "v1:"
        self._script = link.script(_MODEL)
        self._here = ModelMemory()

    async def model(self, turn: Turn) -> str:
        """One round trip."""
        arguments = [turn.decision, turn.proposed, turn.least, turn.idle, int(turn.dry), len(turn.close), *turn.close, *turn.others]
        found = await self._link.run(lambda redis: self._script([self._prefix + turn.session], arguments), None)
        if found is None:
            return await self._here.model(turn)
        model: str = found[0].decode()
        if not turn.dry:
            self._here.note(turn, model, int(found[1]))
        return model

    async def close(self) -> None:
        await self._link.close()
