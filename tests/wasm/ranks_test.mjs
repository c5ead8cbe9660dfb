// Tests modules under Node in worlds with native ranks, which run native_rank.cpp: both call the same operations and must get the same
// bits.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test as nodeTest } from 'node:test';
import { Guest, hash, makeBits } from './guest.mjs';
import { startNatives, token } from './natives.mjs';
import { Rank } from './rank.mjs';
import { canReduce, dtypes, f32, reduceOps } from './tables.mjs';

const { RINGLET_TEST_MODULE: module, RINGLET_NATIVE_RANK: program } = process.env;
const timeout = 120_000;
const skip = existsSync(program) ? false : `${program} has not been built`;
const test = (name, options, run) => nodeTest(name, { ...options, skip }, run);

/** The line that reduceEverything prints of the largest sum of f32 if it is a plain loop over the ranks. */
function lineInRankOrder(size) {
  let stage = 0;
  for (const name of dtypes)
    for (const opName of reduceOps)
      for (const each of [1, 1_000, 40_000]) {
        if (!canReduce(name, opName)) continue;
        ++stage;
        if (name !== 'f32' || opName !== 'sum' || each !== 40_000) continue;
        const of = Array.from({ length: size }, (_, rank) => new Float32Array(makeBits(f32, each, rank, stage).buffer));
        const total = new Float32Array(of[0]);
        for (const values of of.slice(1)) values.forEach((value, i) => (total[i] += value));
        const bits = new Uint32Array(total.buffer);
        total.forEach((value, i) => {
          if (Number.isNaN(value)) bits[i] = 0x7fc00000;
        });
        return `f32 sum ${each} ${hash(new Uint8Array(total.buffer))}`;
      }
  throw new Error('there is no such line');
}

const largeAsRing = {
  RINGLET_EXCHANGE_BYTES: '0',
  RINGLET_DIRECT_BYTES: '0',
  RINGLET_PLACEMENT: 'ring',
};
for (const [natives, guests, settings] of [
  [1, 1],
  [2, 2],
  [1, 3],
  [3, 1],
  [2, 2, { ...largeAsRing, RINGLET_ORDER: 'rank' }],
])
  test(`${natives} native and ${guests} wasm ranks have the same bits, ${JSON.stringify(settings ?? {})}`, { timeout }, async () => {
    const world = await startNatives(program, natives, guests, [], settings);
    try {
      const tabs = await Promise.all(Array.from({ length: guests }, (_, i) => Guest.join(module, world.port, `tab ${i}`)));
      assert.deepEqual(
        tabs.map((tab) => tab.number).sort(),
        Array.from({ length: guests }, (_, i) => natives + i),
      );
      assert.ok(tabs.every((tab) => tab.size === natives + guests));
      assert.deepEqual(tabs[0].rank.seats.at(-1).slice(1), [natives + guests, guests, natives + guests]);
      const printed = await Promise.all(tabs.map((tab) => tab.runAll()));
      if (settings !== undefined) assert.ok(printed[0].includes(lineInRankOrder(natives + guests)));
      for (let rank = 0; rank < natives; ++rank) {
        const lines = (await world.output(rank)).trim().split('\n');
        for (const [i, theirs] of printed.entries()) {
          // The lines of messages are left out, since each rank receives a different message.
          const differ = lines.filter((line, at) => line !== theirs[at] && !line.startsWith('send and recv'));
          assert.deepEqual(differ, [], `rank ${rank} beside tab ${i}`);
          assert.equal(lines.length, theirs.length);
        }
      }
    } finally {
      world.stop();
    }
  });

test('another token is refused, and the world goes on waiting', { timeout }, async () => {
  const world = await startNatives(program, 1, 1);
  try {
    const stranger = await Rank.make(module);
    await assert.rejects(stranger.join(world.port, 'another token than theirs'), { code: 2 });
    await stranger.leave();
    const tab = await Guest.join(module, world.port);
    await tab.runAll();
    await world.output(0);
  } finally {
    world.stop();
  }
});

test('one who waits can leave, and is told when there is no seat', { timeout }, async () => {
  const world = await startNatives(program, 1, 2);
  try {
    const early = await Rank.make(module);
    const joining = early.join(world.port, token);
    while (early.seats.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const left = assert.rejects(joining, { code: 6 });
    await early.leave();
    await left;
    const tabs = await Promise.all([Guest.join(module, world.port), Guest.join(module, world.port)]);
    const late = await Rank.make(module);
    await assert.rejects(late.join(world.port, token), /complete/);
    await late.leave();
    await Promise.all(tabs.map((tab) => tab.runAll()));
  } finally {
    world.stop();
  }
});

test('a native rank that is killed is named', { timeout }, async () => {
  const world = await startNatives(program, 2, 1);
  try {
    const tab = await Guest.join(module, world.port);
    world.kill(1);
    await assert.rejects(tab.runAll(), { code: 3, rank: 1 });
    assert.equal(tab.rank.failures.length, 1);
    await tab.rank.leave();
  } finally {
    world.stop();
  }
});
