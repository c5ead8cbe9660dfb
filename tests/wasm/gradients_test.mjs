// Tests averages, optimizers and FSDP through the exports, between modules of this process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeWorld, seeded } from './piped_world.mjs';
import { f16, f32, f64, i32 } from './tables.mjs';

const timeout = 120_000;
const none = -1;

/** Makes a tree in a rank's memory. Each leaf has a name, a dtype, its values and a shape. */
function plant(rank, leaves) {
  const tree = rank.call('ringlet_tree');
  const places = leaves.map(({ name, dtype = f32, values, shape = [values.length] }) => {
    const [text, extents, place] = [rank.text(name), rank.put(Uint32Array.from(shape)), rank.put(values)];
    assert.equal(rank.call('ringlet_tree_add', tree, text, dtype, place, extents, shape.length), 0);
    rank.free(text, extents);
    return place;
  });
  return {
    tree,
    values: (index) => rank.get(leaves[index].values.constructor, places[index], leaves[index].values.length),
    write: (index, values) => rank.module.HEAPU8.set(new Uint8Array(values.buffer), places[index]),
  };
}

const onAll = (ranks, start) => Promise.all(ranks.map((rank, index) => start(rank, index)));
const refusal = (action) => {
  try {
    action();
  } catch (error) {
    return error;
  }
  assert.fail('nothing was refused');
};

test('the state of those with the most steps is everywhere, and is told', { timeout }, async () => {
  const { ranks, groups, end } = await makeWorld(3, seeded(1));
  const steps = [2, 9, 1];
  const trees = ranks.map((rank, i) =>
    plant(rank, [
      { name: 'model.a', values: new Float32Array(1_200_000).fill(steps[i]) },
      { name: 'model.b', dtype: f64, values: Float64Array.of(i) },
    ]),
  );
  const sync = (rank, i, tree = trees[i].tree, group = groups[i], stream = 0) => {
    const values = rank.text(`values of ${i}`);
    const started = rank.startObject('ringlet_sync', group, stream, tree, values, i === 1 ? 1 : 0, steps[i]);
    rank.free(values);
    return started;
  };
  for (const { done } of [sync(ranks[0], 0, 0), sync(ranks[0], 0, trees[0].tree, 0), sync(ranks[0], 0, trees[0].tree, groups[0], 1024)])
    await assert.rejects(done, { code: 1 });
  const started = ranks.map((rank, i) => sync(rank, i));
  await Promise.all(started.map(({ done }) => done));
  ranks.forEach((rank, i) => {
    const { handle } = started[i];
    // Rank 1 lacks a state, whatever it says of its steps.
    assert.equal(rank.call('ringlet_sync_takes', handle), i === 0 ? 0 : 1);
    assert.equal(rank.call('ringlet_sync_step', handle), 2);
    assert.equal(rank.module.UTF8ToString(rank.call('ringlet_sync_values', handle)), 'values of 0');
    assert.deepEqual(trees[i].values(0), new Float32Array(1_200_000).fill(2));
    assert.deepEqual(trees[i].values(1), Float64Array.of(0));
    assert.equal(rank.call('ringlet_object_release', handle), 0);
    assert.ok(Number.isNaN(rank.module._ringlet_sync_step(handle)));
  });
  await end();
});

test('a tree is averaged: mixed dtypes, buckets, types of communication, weights', { timeout }, async () => {
  for (const size of [1, 2, 3]) {
    const { ranks, groups, end } = await makeWorld(size, seeded(size));
    const mean = (size - 1) / 2;
    for (const bytes of [0, 1000, 32 << 20])
      for (const type of [none, 9, 10]) {
        const trees = ranks.map((rank, index) =>
          plant(rank, [
            { name: 'a.weight', values: new Float32Array(3000).fill(index), shape: [30, 100] },
            { name: 'a.bias', values: Float32Array.of(4 * index), shape: [] },
            { name: 'b', dtype: f64, values: Float64Array.of(index, 2 * index, 0.5) },
            { name: 'h', dtype: f16, values: Uint16Array.of(0x3c00, 0x4000) },
            { name: 'empty', values: new Float32Array(0) },
          ]),
        );
        await onAll(ranks, (rank, i) => rank.start('ringlet_average_gradients', groups[i], 0, trees[i].tree, bytes, type, NaN));
        for (const tree of trees) {
          assert.deepEqual(tree.values(0), new Float32Array(3000).fill(mean));
          assert.deepEqual(tree.values(1), Float32Array.of(4 * mean));
          assert.deepEqual(tree.values(2), Float64Array.of(mean, 2 * mean, 0.5));
          assert.deepEqual(tree.values(3), Uint16Array.of(0x3c00, 0x4000));
        }
        if (size === 1) continue;
        const weight = (i) => (i === 0 ? 3 : i === 1 ? 1 : 0);
        trees.forEach((tree, i) => tree.write(1, Float32Array.of(4 * i)));
        await onAll(ranks, (rank, i) =>
          rank.start('ringlet_average_gradients', groups[i], 5, trees[i].tree, bytes, type, weight(i), type === none ? NaN : 4),
        );
        for (const tree of trees) assert.deepEqual(tree.values(1), Float32Array.of(1));
        ranks.forEach((rank, i) => assert.equal(rank.call('ringlet_object_release', trees[i].tree), 0));
      }
    await end();
  }
});

test(
  'gradients in blocks have the same bits on all ranks, near their mean, and with feedback near it over many steps',
  { timeout },
  async () => {
    for (const [wire, step] of [
      [256, 1 / 64],
      [257, 1 / 4],
    ]) {
      const { ranks, groups, end } = await makeWorld(3, seeded(wire));
      const values = (i) => Float32Array.from({ length: 200 }, (_, at) => ((at * 7 + i * 13) % 64) / 64 + 0.5);
      const mean = (at) => ranks.reduce((sum, _, i) => sum + values(i)[at], 0) / 3;
      const trees = ranks.map((rank, i) => plant(rank, [{ name: 'w', values: values(i) }]));
      const sums = new Float64Array(200);
      const steps = 20;
      for (let turn = 0; turn < steps; ++turn) {
        trees.forEach((tree, i) => tree.write(0, values(i)));
        await onAll(ranks, (rank, i) => rank.start('ringlet_average_gradients', groups[i], 0, trees[i].tree, 0, wire, NaN, NaN, 1, 0));
        const found = trees[0].values(0);
        for (const tree of trees) assert.deepEqual(tree.values(0), found);
        // Each rank's third is rounded in steps half as long, by half of one, to which feedback adds as much; the owner rounds by half a step.
        found.forEach((value, at) => {
          sums[at] += value;
          assert.ok(Math.abs(value - mean(at)) <= 2 * step, `element ${at} is ${value}, not ${mean(at)}`);
        });
      }
      // The owner rounds each mean by half a step.
      sums.forEach((sum, at) =>
        assert.ok(Math.abs(sum / steps - mean(at)) <= 0.6 * step, `element ${at}: ${sum / steps}, not ${mean(at)}`),
      );
      await end();
    }
  },
);

test('trees that differ are named on every rank, and the group lives on', { timeout }, async () => {
  const { ranks, groups, end } = await makeWorld(2);
  const trees = ranks.map((rank, i) => plant(rank, [{ name: i === 0 ? 'a' : 'b', values: new Float32Array(6), shape: [2, 3] }]));
  const outcome = await Promise.allSettled(
    ranks.map((rank, i) => rank.start('ringlet_average_gradients', groups[i], 0, trees[i].tree, 0, none, NaN)),
  );
  for (const { reason } of outcome) {
    assert.equal(reason.code, 2);
    assert.equal(reason.rank, 1);
    assert.match(reason.message, /tensor 0 is 'a' f32 \(2, 3\) in rank 0's but 'b' f32 \(2, 3\) in rank 1's/);
  }
  await onAll(ranks, (rank, i) => rank.barrier(groups[i]));
  await end();
});

test("FSDP with every optimizer follows plain data parallelism; its state is the shards' alone", { timeout }, async () => {
  const formulas = [
    ['SGD', [0.9]],
    ['SGD', [0.9, 0.01, 0, 1]],
    ['Adam', [0.9, 0.99, 1e-8, 1]],
    ['AdamW', [0.9, 0.99, 1e-8, 0.05, 1]],
    ['Lion', [0.9, 0.99, 0.01]],
    ['Adagrad', []],
    ['RMSprop', [0.9]],
    ['AdaDelta', []],
    ['Adamax', []],
  ];
  const shapes = [[7, 3], [5], []];
  for (const size of [1, 3]) {
    const { ranks, groups, end } = await makeWorld(size, seeded(size + 10));
    for (const [index, [formula, numbers]] of formulas.entries()) {
      const leaves = () =>
        shapes.map((shape, i) => {
          const count = shape.reduce((product, extent) => product * extent, 1);
          return { name: `p${i}`, shape, values: Float32Array.from({ length: count }, (_, at) => Math.sin(at + i)) };
        });
      const clip = index % 2 === 1 ? 0.5 : NaN;
      const states = ranks.map((rank, i) => {
        const [name, list] = [rank.text(formula), rank.put(Float64Array.from(numbers))];
        const optimizer = () => rank.call('ringlet_optimizer', name, 0.01, list, numbers.length, none);
        const weights = size === 1 ? 0 : rank.put(Float64Array.of(1, 0, 2));
        return {
          sharded: plant(rank, leaves()),
          plain: plant(rank, leaves()),
          gradients: plant(rank, leaves()),
          averaged: plant(rank, leaves()),
          optimizer: optimizer(),
          plainOptimizer: optimizer(),
          fsdp: rank.call('ringlet_fsdp', groups[i], 0, 40, clip, none, weights, 0, 0),
        };
      });
      for (let step = 0; step < 4; ++step) {
        states.forEach(({ gradients, averaged }, i) =>
          shapes.forEach((_, leaf) => {
            const values = gradients.values(leaf).map((_, at) => Math.cos(at * (i + 1) + step + leaf));
            gradients.write(leaf, values);
            averaged.write(leaf, values);
          }),
        );
        await onAll(ranks, (rank, i) => {
          const { fsdp, gradients, sharded, optimizer } = states[i];
          return rank.start('ringlet_fsdp_apply', fsdp, 2, gradients.tree, sharded.tree, optimizer);
        });
        await onAll(ranks, (rank, i) => rank.start('ringlet_average_gradients', groups[i], 2, states[i].averaged.tree, 0, none, NaN));
        for (const [i, { averaged, plain, plainOptimizer, fsdp }] of states.entries()) {
          if (!Number.isNaN(clip)) {
            const all = shapes.flatMap((_, leaf) => [...averaged.values(leaf)]);
            const norm = Math.hypot(...all);
            assert.ok(Math.abs(ranks[i].module._ringlet_fsdp_norm(fsdp) - norm) < 1e-4);
            const factor = Math.min(1, clip / (norm + 1e-6));
            shapes.forEach((_, leaf) =>
              averaged.write(
                leaf,
                averaged.values(leaf).map((value) => value * factor),
              ),
            );
          } else assert.ok(Number.isNaN(ranks[i].module._ringlet_fsdp_norm(fsdp)));
          assert.equal(ranks[i].call('ringlet_optimizer_apply', plainOptimizer, averaged.tree, plain.tree), 0);
        }
      }
      let bytes = 0;
      for (const [i, { sharded, plain, optimizer }] of states.entries()) {
        bytes += ranks[i].module._ringlet_optimizer_state_bytes(optimizer);
        shapes.forEach((_, leaf) => {
          assert.deepEqual(sharded.values(leaf), states[0].sharded.values(leaf));
          const wanted = plain.values(leaf);
          sharded
            .values(leaf)
            .forEach((value, at) => assert.ok(Math.abs(value - wanted[at]) < 1e-4, `${formula}: ${value}, not ${wanted[at]}`));
        });
      }
      assert.equal(bytes, ranks[0].module._ringlet_optimizer_state_bytes(states[0].plainOptimizer));
    }
    await end();
  }
});

test('what does not fit is refused with its value, and nothing moves', { timeout }, async () => {
  const { ranks, groups, end } = await makeWorld(2);
  const rank = ranks[0];
  const tree = plant(rank, [{ name: 'a', values: new Float32Array(4) }]);
  const [place, shape] = [rank.put(64), rank.put(Uint32Array.of(4, 4, 4, 4, 4, 4, 4, 4, 4))];
  const add = (name, ...rest) => {
    const text = rank.text(name);
    const code = rank.module._ringlet_tree_add(tree.tree, text, ...rest);
    rank.free(text);
    assert.equal(code, 1);
    return rank.failure(code).message;
  };
  assert.match(add('a', f32, place, shape, 1), /has 'a' already/);
  assert.match(add('a..b', f32, place, shape, 1), /empty level/);
  assert.match(add('b', 99, place, shape, 1), /unknown dtype number 99/);
  assert.match(add('b', f32, place, shape, 9), /9 axes/);
  assert.match(add('b', f32, 0, shape, 1), /null but has 4/);
  const optimizer = (name, rate, numbers, dtype = none) => {
    const [text, list] = [rank.text(name), rank.put(Float64Array.from(numbers))];
    return rank.call('ringlet_optimizer', text, rate, list, numbers.length, dtype);
  };
  assert.match(refusal(() => optimizer('Muon', 0.1, [])).message, /no optimizer 'Muon'; there are SGD, /);
  assert.match(refusal(() => optimizer('AdamW', 0.1, [1.5])).message, /AdamW: betas\[0\] is 1.5/);
  assert.match(refusal(() => optimizer('SGD', -1, [])).message, /learning rate of step 0 is -1/);
  assert.match(refusal(() => optimizer('Adagrad', 0.1, [1e-8, 2])).message, /2 options, more than it has/);
  assert.match(refusal(() => optimizer('Adagrad', 0.1, [], i32)).message, /state_dtype is i32/);
  const sgd = optimizer('SGD', 0.1, []);
  assert.equal(rank.module._ringlet_optimizer_set_learning_rate(sgd, NaN), 1);
  assert.match(refusal(() => rank.call('ringlet_fsdp', groups[0], 0, 0, -2, none, 0, 0, 0)).message, /max_norm is -2/);
  assert.match(refusal(() => rank.call('ringlet_fsdp', groups[0], 0, 0, NaN, 77, 0, 0, 0)).message, /reduce_dtype is 77/);
  assert.match(
    refusal(() => rank.call('ringlet_fsdp', groups[0], 0, 0, NaN, none, rank.put(Float64Array.of(0, 0)), 0, 0)).message,
    /add up to 0/,
  );
  const refused = (...call) => assert.rejects(rank.start(...call), { code: 1 });
  await refused('ringlet_average_gradients', groups[0], 0, tree.tree, 0, f64, NaN);
  await refused('ringlet_average_gradients', groups[0], 0, tree.tree, 0, none, -1);
  await refused('ringlet_average_gradients', groups[0], 1024, tree.tree, 0, none, NaN);
  await refused('ringlet_average_gradients', groups[0], 0, sgd, 0, none, NaN);
  const whole = ranks.map((one) => plant(one, [{ name: 'w', dtype: i32, values: Int32Array.of(1, 2) }]));
  const outcome = await Promise.allSettled(
    ranks.map((one, i) => one.start('ringlet_average_gradients', groups[i], 0, whole[i].tree, 0, none, NaN)),
  );
  for (const { reason } of outcome) assert.match(reason.message, /dtype i32 cannot be averaged/);

  const fsdps = ranks.map((one, i) => one.call('ringlet_fsdp', groups[i], 0, 0, NaN, none, 0, 0, 0));
  const trees = ranks.map((one) => [
    plant(one, [{ name: 'w', values: Float32Array.of(1, 2) }]),
    plant(one, [{ name: 'w', values: new Float32Array(2) }]),
  ]);
  const step = (i) => ranks[i].start('ringlet_fsdp_apply', fsdps[i], 0, trees[i][0].tree, trees[i][1].tree, i === 0 ? sgd : otherSgd);
  const otherSgd = ranks[1].call('ringlet_optimizer', ranks[1].text('SGD'), 0.1, 0, 0, none);
  const first = step(0);
  await assert.rejects(step(0), { code: 1 });
  await Promise.all([first, step(1)]);
  await Promise.all([step(0), step(1)]);
  assert.equal(rank.module._ringlet_object_release(fsdps[0]), 0);
  assert.equal(rank.module._ringlet_object_release(fsdps[0]), 1);
  await end();
});
