// Tests the trainer of a tab under Node, beside native trainers.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test as nodeTest } from 'node:test';
import { startNatives } from './natives.mjs';
import { inFolder, model, trainInTab } from './training_tab.mjs';

const { RINGLET_TEST_MODULE: module, RINGLET_NATIVE_RANK: program } = process.env;
const skip = existsSync(program) ? false : `${program} has not been built`;
const test = (name, run) => nodeTest(name, { timeout: 120_000, skip }, run);

async function train(natives, tabs, samples, extra = []) {
  return inFolder(async (folder, text) => {
    const log = join(folder, 'losses');
    const run = ['--steps', '60', '--batch', '10', '--check-every', '7', '--json', '--log-losses', log, '--data', text];
    const world = await startNatives(program, natives, tabs, [...withoutWidth(extra), ...extra, ...run]);
    try {
      const seen = await Promise.all(Array.from({ length: tabs }, () => trainInTab(module, world.port, samples)));
      const report = JSON.parse((await world.output(0)).trim().split('\n').at(-1));
      for (let rank = 1; rank < natives; ++rank) await world.output(rank);
      const losses = readFileSync(log, 'utf8')
        .trim()
        .split('\n')
        .map((line) => Number(line.split(' ')[1]));
      return { seen, report, losses };
    } finally {
      world.stop();
    }
  });
}

/** The small model's options, without its width where another one is given. */
function withoutWidth(extra) {
  const at = extra.includes('--width') ? model.indexOf('--width') : model.length;
  return model.filter((_, index) => index !== at && index !== at + 1);
}

const alone = skip ? undefined : train(1, 0, 1);

for (const [natives, tabs, samples] of [
  [1, 1, 1],
  [2, 2, 3],
  [1, 3, 2],
]) {
  test(`${natives} native rank(s) and ${tabs} tab(s) train as one native rank does, with equal parameters`, async () => {
    const expected = await alone;
    const { seen, report, losses } = await train(natives, tabs, samples);
    assert.equal(losses.length, 60);
    losses.forEach((loss, step) => {
      const wanted = expected.losses[step];
      assert.ok(Math.abs(loss - wanted) < 1e-4 * wanted, `step ${step}: ${loss}, one rank alone ${wanted}`);
    });
    assert.ok(losses.at(-1) < 0.8 * losses[0]);
    for (const tab of seen) {
      assert.deepEqual(tab.losses, losses);
      assert.equal(tab.validationLoss, report.val_loss_last);
      assert.deepEqual(Object.keys(tab.checked), ['7', '14', '21', '28', '35', '42', '49', '56', '60']);
      assert.deepEqual(tab.checked, seen[0].checked);
      assert.equal(tab.checked[60], report.parameter_hash);
      assert.ok(tab.shares.every((share) => share >= 0 && share <= 10));
      assert.equal(tab.tokens, 32 * tab.shares.reduce((sum, share) => sum + share, 0));
      assert.equal(tab.written, 40);
    }
  });
}

for (const wire of ['int8', 'int4']) {
  test(`gradients in ${wire} blocks: tabs and native ranks end with equal parameters`, async () => {
    // Wide enough for blocks.
    const { seen, report, losses } = await train(2, 2, 2, ['--width', '64', '--wire', wire]);
    assert.ok(losses.at(-1) < 0.8 * losses[0]);
    for (const tab of seen) {
      assert.deepEqual(tab.losses, losses);
      assert.equal(tab.checked[60], report.parameter_hash);
    }
  });
}
