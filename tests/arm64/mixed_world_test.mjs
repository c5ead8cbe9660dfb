// One rank on this machine's processor, one on an emulated 64-bit Arm and one in WebAssembly train together and must have the same parameters.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { arch } from 'node:process';
import { join } from 'node:path';
import { test } from 'node:test';
import { Guest } from '../wasm/guest.mjs';
import { startRanks } from '../wasm/natives.mjs';
import { inFolder, model, trainInTab } from '../wasm/training_tab.mjs';

const { RINGLET_TEST_MODULES: modules, RINGLET_TRAINERS: trainers, RINGLET_RANKS: ranks } = process.env;
/** The command lines of a program, by the processor that it is for. */
function commandsOf(programs) {
  const [native, arm64] = programs.split(',');
  return { [arch]: [native], arm64: arm64.split(';') };
}
const steps = 40;
const wide = ['--layers', '1', '--width', '64', '--heads', '2', '--context', '32'];
const everyStep = Array.from({ length: steps }, (_, step) => String(step + 1));

/** Returns the hashes that this rank logged, by step. */
function readHashes(file) {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return Object.fromEntries(lines.map((line) => line.split(' ')));
}

// Rank 0 keeps the meeting, decides about the run and divides the averages, so each of the two processors is rank 0 once.
// Blocks are for tensors of 16,384 elements and more, which a wider model has.
for (const [first, second, type, shape] of [
  [arch, 'arm64', 'none', model],
  ['arm64', arch, 'bf16', model],
  ['arm64', arch, 'int8', wide],
])
  test(`${first} as rank 0, ${second} and wasm train with the same parameters (gradients as ${type})`, { timeout: 120_000 }, () =>
    inFolder(async (folder, text) => {
      const [hashes, losses] = [join(folder, 'hashes'), join(folder, 'losses')];
      const run = ['--steps', steps, '--batch', 9, '--check-every', 1, '--shares', 'even', '--communication-type', type];
      const options = [...shape, ...run, '--json', '--data', text, '--log-hashes', hashes, '--log-losses', losses].map(String);
      const world = await startRanks(
        [first, second].map((name) => [...commandsOf(trainers)[name], ...options]),
        1,
      );
      try {
        const [tab, report] = await Promise.all([
          trainInTab(join(modules, 'train_text.mjs'), world.port, 3),
          world.output(0),
          world.output(1),
        ]);
        const all = {
          [first]: readHashes(`${hashes}.0`),
          [second]: readHashes(`${hashes}.1`),
          wasm: tab.checked,
        };
        for (const hashes of Object.values(all)) {
          assert.deepEqual(Object.keys(hashes), everyStep);
          assert.deepEqual(hashes, all.wasm);
        }
        assert.equal(JSON.parse(report.trim().split('\n').at(-1)).parameter_hash, tab.checked[steps]);
        assert.equal(new Set(Object.values(tab.checked)).size, steps);
        assert.ok(tab.shares.every((share) => share === 3));
        assert.ok(tab.losses.at(-1) < 0.8 * tab.losses[0], `${tab.losses}`);
        for (const [name, hashes] of Object.entries(all)) console.log(`${name}: parameters ${hashes[steps]} after ${steps} steps`);
      } finally {
        world.stop();
      }
    }),
  );

test('averages and FSDP, unrounded and in blocks, have the same bits', { timeout: 120_000 }, async () => {
  const commands = [arch, 'arm64'].map((name) => [...commandsOf(ranks)[name], 'train']);
  const world = await startRanks(commands, 1);
  try {
    const tab = await Guest.join(join(modules, 'ringlet.mjs'), world.port, 'wasm');
    const [lines, ...printed] = await Promise.all([tab.runTraining(), ...commands.map((_, rank) => world.output(rank))]);
    for (const theirs of printed) assert.deepEqual(theirs.trim().split('\n'), lines);
    for (const wire of ['int8', 'int4']) assert.ok(lines.some((line) => line.startsWith(`fsdp_apply_gradients in ${wire} `)));
    for (const line of lines) console.log(line);
  } finally {
    world.stop();
  }
});
