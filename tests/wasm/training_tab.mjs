// Runs the trainer of a tab under Node, for tests.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { token } from './natives.mjs';
import { Rank } from './rank.mjs';
import { f32 } from './tables.mjs';

/** These options tell native trainers the model, a small one. */
export const model = ['--layers', '1', '--width', '32', '--heads', '2', '--context', '32'];

/** Calls `run` with a temporary folder, and with a short text in it that has something to learn. */
export function inFolder(run) {
  const folder = mkdtempSync(join(tmpdir(), 'ringlet-train-'));
  const text = join(folder, 'text.txt');
  const lines = Array.from(
    { length: 2000 },
    (_, line) => `rank ${line % 7} sends ${line % 5} chunks to rank ${(line + 1) % 7}, then waits.\n`,
  );
  writeFileSync(text, lines.join(''));
  return run(folder, text).finally(() => rmSync(folder, { recursive: true }));
}

// These numbers are those of tab_trainer.hpp.
const [END, COMPUTE, BROADCAST, ALL_SUM, ALL_GATHER, AVERAGE] = [0, 1, 2, 3, 4, 5];
const [STEP, LOSS, VALIDATION_LOSS, SHARE, TOKENS, CHECKED_STEP] = [1, 3, 5, 7, 11, 15];
const NUMBERS = 17;

/** Joins the world at this port, takes part until the end, and returns what the trainer saw. `module` is the path of train_text.mjs. */
export async function trainInTab(module, port, samples) {
  const rank = await Rank.make(module);
  const group = await rank.join(port, token);
  const exports = rank.module;
  const trainer = exports._train_text_create(rank.call('ringlet_group_rank', group), rank.call('ringlet_group_size', group));
  const words = (pointer, count) => rank.get(Uint32Array, pointer, count);
  const numbers = () => rank.get(Float64Array, exports._train_text_numbers(trainer), NUMBERS);
  const seen = { losses: [], shares: [], checked: {} };

  const exchange = (next) => {
    const [input, inputCount, output, outputCount, dtype, stream] = words(exports._train_text_exchange(trainer), 6);
    const [from, to] = [
      [input, inputCount],
      [output, outputCount],
    ];
    if (next === BROADCAST) return rank.collective(group, 'broadcast', { dtype, stream, output: to });
    return rank.collective(group, next === ALL_SUM ? 'all_reduce' : 'all_gather', { dtype, stream, input: from, output: to });
  };
  const average = async () => {
    const at = exports._train_text_average(trainer);
    const [names, values, counts, leaves, communication, stream] = words(at, 6);
    const [allReduceSize, weight] = rank.get(Float64Array, at + 24, 2);
    const columns = [names, values, counts].map((column) => words(column, leaves));
    const tree = rank.call('ringlet_tree');
    for (let leaf = 0; leaf < leaves; ++leaf) {
      const [name, value, count] = columns.map((column) => column[leaf]);
      const shape = rank.put(Uint32Array.of(count));
      rank.call('ringlet_tree_add', tree, name, f32, value, shape, 1);
      rank.free(shape);
    }
    await rank.start(
      'ringlet_average_gradients',
      group,
      stream,
      tree,
      allReduceSize,
      communication | 0,
      weight < 0 ? NaN : weight,
      NaN,
      1,
      16384,
    );
    rank.call('ringlet_object_release', tree);
  };

  for (;;) {
    const next = exports._train_text_next(trainer);
    if (next === COMPUTE) {
      exports._train_text_compute(trainer, samples);
      await new Promise(setImmediate);
      continue;
    }
    if (next === AVERAGE) {
      seen.shares.push(numbers()[SHARE]);
      await average();
    } else if (next >= BROADCAST && next <= ALL_GATHER) {
      await exchange(next);
    } else {
      assert.equal(next, END, exports.UTF8ToString(exports._train_text_problem(trainer)));
      break;
    }
    exports._train_text_done(trainer);
    const now = numbers();
    if (now[STEP] > seen.losses.length) seen.losses.push(now[LOSS]);
    if (now[CHECKED_STEP] >= 0) seen.checked[now[CHECKED_STEP]] = exports.UTF8ToString(exports._train_text_hash(trainer));
  }
  seen.validationLoss = numbers()[VALIDATION_LOSS];
  seen.tokens = numbers()[TOKENS];
  seen.written = exports._train_text_write(trainer, 40);
  exports._train_text_destroy(trainer);
  await rank.leave();
  return seen;
}
