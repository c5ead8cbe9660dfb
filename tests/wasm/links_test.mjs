// Tests the browser's loop, links and exports, in worlds of modules of this process whose links are pipes between WebSockets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeWorld, seeded } from './piped_world.mjs';
import { f32, i32, max } from './tables.mjs';

const timeout = 60_000;

test('every collective gives what it should, from nothing to many messages', { timeout }, async () => {
  for (const size of [1, 2, 3, 4]) {
    const { ranks, groups, end } = await makeWorld(size, seeded(size));
    for (const count of [0, 1, 5, 1000, 300_000]) {
      const all = (form, make) => Promise.all(ranks.map((rank, index) => rank.collective(groups[index], form, make(index))));
      const values = (rank) => Float32Array.from({ length: count }, (_, i) => (i % 1000) + rank);
      const inputs = ranks.map((rank, index) => rank.put(values(index)));
      const total = Float32Array.from({ length: count }, (_, i) => (i % 1000) * size + (size * (size - 1)) / 2);

      await all('all_reduce', (i) => ({ input: [inputs[i], count], output: [inputs[i], count] }));
      for (const [i, rank] of ranks.entries()) assert.deepEqual(rank.get(Float32Array, inputs[i], count), total);

      const gathered = ranks.map((rank) => rank.put(count * size * 4));
      await all('all_gather', (i) => ({ input: [inputs[i], count], output: [gathered[i], count * size] }));
      for (const [i, rank] of ranks.entries())
        for (let part = 0; part < size; ++part) assert.deepEqual(rank.get(Float32Array, gathered[i] + part * count * 4, count), total);

      const scattered = ranks.map((rank) => rank.put(count * 4));
      const part = (i) => Math.floor(count / size) + (i < count % size ? 1 : 0);
      await all('reduce_scatter', (i) => ({ op: max, input: [inputs[i], count], output: [scattered[i], part(i)] }));
      const first = part(0);
      assert.deepEqual(ranks[0].get(Float32Array, scattered[0], first), total.subarray(0, first));

      await all('broadcast', (i) => ({ output: [i === size - 1 ? inputs[i] : scattered[i], count], root: size - 1 }));
      await all('reduce', (i) => ({ input: [inputs[i], count], output: [scattered[i], count] }));
      assert.deepEqual(
        ranks[0].get(Float32Array, scattered[0], count),
        total.map((value) => value * size),
      );
      await all('gather', (i) => ({ input: [inputs[i], count], output: [gathered[i], count * size] }));
      await all('scatter', (i) => ({ input: [gathered[i], count * size], output: [scattered[i], count] }));
      for (const [i, rank] of ranks.entries()) assert.deepEqual(rank.get(Float32Array, scattered[i], count), total);
      await all('all_to_all', (i) => ({ input: [gathered[i], count * size], output: [ranks[i].put(count * size * 4), count * size] }));
      await all('barrier', () => ({}));
      for (const [i, rank] of ranks.entries()) rank.free(inputs[i], gathered[i], scattered[i]);
    }
    await end();
  }
});

test('messages keep their order, and another shape is an error on both sides that the group outlives', { timeout }, async () => {
  const { ranks, groups, end } = await makeWorld(2, seeded(7));
  const shape = ranks.map((rank) => rank.put(Uint32Array.of(50_000, 4)));
  const from = ranks[0].put(Float32Array.from({ length: 200_000 }, (_, i) => i));
  const to = ranks[1].put(800_000);
  for (let round = 0; round < 3; ++round) {
    await Promise.all([
      ranks[0].start('ringlet_send', groups[0], 0, 0, f32, from, shape[0], 2, 1),
      ranks[1].start('ringlet_receive', groups[1], 0, 0, f32, to, shape[1], 2, 0),
    ]);
    assert.deepEqual(ranks[1].get(Float32Array, to, 200_000), ranks[0].get(Float32Array, from, 200_000));
    const outcome = await Promise.allSettled([
      ranks[0].start('ringlet_send', groups[0], 0, 0, f32, from, shape[0], 2, 1),
      ranks[1].start('ringlet_receive', groups[1], 0, 0, f32, to, shape[1], 1, 0),
    ]);
    for (const { reason } of outcome) assert.equal(reason.code, 2);
  }
  await end();
});

test('a split gives groups, which can be left', { timeout }, async () => {
  const { ranks, groups, end } = await makeWorld(3);
  const parts = await Promise.all(ranks.map((rank, i) => rank.start('ringlet_split', groups[i], 0, 0, i === 1 ? -1 : 0, -i)));
  assert.equal(parts[1], 0);
  assert.deepEqual(
    [0, 2].map((i) => ranks[i].call('ringlet_group_size', parts[i])),
    [2, 2],
  );
  const places = [0, 2].map((i) => ranks[i].put(Int32Array.of(i)));
  await Promise.all(
    [0, 2].map((i, at) => ranks[i].collective(parts[i], 'all_reduce', { dtype: i32, input: [places[at], 1], output: [places[at], 1] })),
  );
  assert.deepEqual(ranks[2].get(Int32Array, places[1], 1), Int32Array.of(2));
  for (const i of [0, 2]) assert.equal(ranks[i].call('ringlet_group_leave', parts[i]), 0);
  assert.equal(ranks[0].call('ringlet_group_leave', parts[0]), 1);
  await end();
});

test('a mistake is refused before anything moves', { timeout }, async () => {
  const { ranks, groups, end } = await makeWorld(2);
  const place = ranks[0].put(64);
  const refused = (name, ...rest) => assert.rejects(ranks[0].start(name, ...rest), { code: 1 });
  const one = { input: [place, 1], output: [place, 1] };
  const refusedReduce = (options, group = groups[0], form = 'all_reduce') =>
    assert.rejects(ranks[0].collective(group, form, { ...one, ...options }), { code: 1 });
  await refusedReduce({ dtype: 99 });
  await refusedReduce({ dtype: 256 + f32 });
  await refusedReduce({ op: 9 });
  await refusedReduce({ stream: 1024 });
  await refusedReduce({ timeout: -1 });
  await refusedReduce({}, 12_345);
  await refusedReduce({}, groups[0], 'no such collective');
  await refusedReduce({ input: [place, 0x7fffffff], output: [place, 0x7fffffff], rowElements: 0x7fffffff });
  await refusedReduce({ output: [place, 2] });
  await refusedReduce({ root: 2 }, groups[0], 'broadcast');
  await refused('ringlet_send', groups[0], 0, 0, f32, place, place, 9, 1);
  assert.equal(ranks[0].pending, 0);
  await end();
});

test('ranks that disagree, that are late or that go are named', { timeout }, async () => {
  {
    const { ranks, groups, end } = await makeWorld(3);
    const places = ranks.map((rank) => rank.put(64));
    const outcome = await Promise.allSettled(
      ranks.map((rank, i) =>
        rank.collective(groups[i], 'all_reduce', { dtype: i === 1 ? i32 : f32, input: [places[i], 4], output: [places[i], 4] }),
      ),
    );
    for (const { reason } of outcome) assert.equal(reason.code, 2);
    for (const rank of ranks) assert.equal(rank.failures.length, 1);
    await end();
  }
  {
    const { ranks, groups, end } = await makeWorld(2);
    const late = ranks[0].barrier(groups[0], { timeout: 200 });
    await assert.rejects(late, { code: 4, rank: 1 });
    await end();
  }
  {
    const { ranks, groups, pipes, end } = await makeWorld(2);
    const pending = ranks[0].barrier(groups[0]);
    for (const socket of pipes.get('0 1').ends) socket.terminate();
    await assert.rejects(pending, { code: 3, rank: 1 });
    await end();
  }
});

test("keys and records are the natives' own, as tests/secure/key_test.cpp knows them", { timeout }, async () => {
  const { ranks, end } = await makeWorld(1);
  const rank = ranks[0];
  const counted = (first) => rank.put(Uint8Array.from({ length: 32 }, (_, i) => first + i));
  const hex = (pointer, bytes) => Buffer.from(rank.get(Uint8Array, pointer, bytes)).toString('hex');
  const keys = rank.put(64);
  rank.module._test_derive_keys(counted(0), counted(100), keys);
  assert.equal(hex(keys, 32), 'fe8ab2876acb52ef9bcb960c7ff30bd7f37cf9ddcc3d7611a61b8a49a32cb4d2');
  assert.equal(hex(keys + 32, 32), '751574cc548c113ebbefa5652ec79d7bad2409eec4a00e6c01f64f5754d2cb06');

  const head = rank.put(Uint8Array.of(16, 0, 0, 0));
  const content = rank.put(new TextEncoder().encode('a record of text'));
  const sealed = rank.put(32);
  for (let cut = 0; cut <= 16; ++cut) {
    assert.equal(rank.module._test_seal(keys, 0x0102030405, head, content, 16, cut, sealed), 1);
    assert.equal(hex(sealed, 32), 'd5cb6747ef33f3fa493ab6b595ffc5eecefd5c1f80e02bb2eb3b954559a58339');
  }

  const secret = rank.put(Buffer.from('77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a', 'hex'));
  assert.equal(rank.module._test_public_key(secret, keys), 1);
  assert.equal(hex(keys, 32), '8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a');
  await end();
});
