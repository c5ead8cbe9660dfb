// Tests of OuterTrainer in Node, in one world with that of native ranks (tests/wasm/native_trainer.cpp --outer).
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test as nodeTest, type TestContext } from 'node:test';
import type * as Package from '../../src/node.js';
import { Installed, Records, serve } from './elastic_records.js';

const test = (name: string, run: (context: TestContext) => Promise<void>): unknown => nodeTest(name, { timeout: 120_000 }, run);
const installed = new Installed();
const interval = 4;

class Model {
  readonly layer = { wide: new Float32Array(5000), exact: new Float64Array(3) };
  readonly narrow = new Float32Array(70);

  /** Pulls the parameters towards values of this rank's own, and returns how many samples that took. */
  pull({ number, rank }: Package.InnerStep): number {
    for (const values of [this.layer.wide, this.layer.exact, this.narrow])
      values.forEach((value, i) => (values[i] = value + 0.05 * (((number * 7919 + rank * 104_729 + i * 31) % 1009) / 1009 - value)));
    return ((number + rank) % 3) + 1;
  }

  hash(): string {
    let hash = 0x811c9dc5;
    for (const { buffer } of [this.layer.wide, this.layer.exact, this.narrow])
      for (const byte of new Uint8Array(buffer)) hash = Math.imul(hash ^ byte, 0x01000193);
    return (hash >>> 0).toString(16).padStart(8, '0');
  }
}

interface Guest {
  readonly trainer: Package.OuterTrainer;
  readonly model: Model;
  readonly states: number[];
  readonly ended: Promise<void>;
}

function begin(url: string, averages: number, wire: Package.OuterTrainerOptions['wire']): Guest {
  const model = new Model();
  const states: number[] = [];
  const trainer = new installed.ringlet.OuterTrainer(
    { url },
    { layer: model.layer, narrow: model.narrow },
    { innerSteps: 2 * interval, fragments: 2, overlap: 1, bySpeed: true, wire, elastic: { onState: (step) => states.push(step) } },
  );
  const ended = trainer.run(averages * interval, (step) => model.pull(step));
  return { trainer, model, states, ended };
}

/** Waits until a guest has been there in so many more averages. */
async function goesOn({ trainer, ended }: Guest, averages: number): Promise<void> {
  const until = trainer.averages + averages;
  let over = false;
  const end = ended.finally(() => (over = true));
  const waiting = async (): Promise<void> => {
    while (!over && trainer.averages < until) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await Promise.race([waiting(), end]);
}

/** After each average all native ranks had the same bits. Returns the hash of the last one. */
function lastHash(records: Records, averages: number): string {
  const known = new Map<number, string>();
  for (const [average, , , hash] of records.natives().flat()) {
    assert.equal(known.get(average) ?? hash, hash, `average ${average}`);
    known.set(average, hash);
  }
  assert.equal(known.size, averages + 1);
  return known.get(averages) ?? '';
}

for (const wire of [undefined, { blocks: 'int8', feedback: true, leastElements: 0 }] as const) {
  test(`native ranks and Node have the same bits of the shared parameters (${wire?.blocks ?? 'f32 and f64'})`, async (context) => {
    const records = new Records(context);
    writeFileSync(join(records.folder, 'index.html'), '<!doctype html><title>none</title>');
    const averages = 40;
    const served = serve(context, records, 2, 2, averages * interval, ['--outer', wire?.blocks ?? 'own']);
    const url = await served.link();
    const guests = [begin(url, averages, wire), begin(url, averages, wire)];
    for (const { ended } of guests) await ended;
    assert.equal(await served.exitCode, 0, served.text);
    const wanted = lastHash(records, averages);
    for (const { trainer, model } of guests) {
      assert.equal(model.hash(), wanted);
      const { 'layer.wide': wide, narrow } = trainer.sharedParameters;
      assert.ok(wide?.data !== model.layer.wide);
      assert.deepEqual([wide?.data, narrow?.data], [model.layer.wide, model.narrow]);
      assert.equal(trainer.averages, averages);
      assert.equal(trainer.steps, averages * interval);
      assert.ok(model.layer.wide.every((value) => value > 0 && value < 1));
      await trainer.leave();
    }
  });
}

test('a native rank dies, a guest goes and another one comes, and those that are left have the same bits', async (context) => {
  const records = new Records(context);
  writeFileSync(join(records.folder, 'index.html'), '<!doctype html><title>none</title>');
  const averages = 400;
  const served = serve(context, records, 3, 2, averages * interval, ['--outer', 'own']);
  const url = await served.link();
  const [stays, goes] = [begin(url, averages, undefined), begin(url, averages, undefined)];
  await goesOn(stays, 10);
  served.kill(0);
  await goesOn(stays, 10);
  const ended = assert.rejects(goes.ended, { code: 'cancelled' });
  await goes.trainer.leave();
  await ended;
  await goesOn(stays, 10);
  const comes = begin(url, averages, undefined);
  await Promise.all([stays.ended, comes.ended]);
  assert.equal(await served.exitCode, 0, served.text);
  const wanted = lastHash(records, averages);
  for (const { trainer, model } of [stays, comes]) {
    assert.equal(model.hash(), wanted);
    await trainer.leave();
  }
  // It was given the state of a training that had gone on.
  assert.ok((comes.states[0] ?? 0) >= 30, comes.states.join());
});

test('a guest with other inner steps is told so, and the others go on', async (context) => {
  const records = new Records(context);
  writeFileSync(join(records.folder, 'index.html'), '<!doctype html><title>none</title>');
  const served = serve(context, records, 2, 1, 4_000_000, ['--outer', 'own']);
  const url = await served.link();
  const stays = begin(url, 1_000_000, undefined);
  await goesOn(stays, 5);
  const model = new Model();
  const other = new installed.ringlet.OuterTrainer({ url }, { layer: model.layer, narrow: model.narrow }, { innerSteps: 4 });
  await assert.rejects(
    other.run(4, (step) => model.pull(step)),
    { code: 'invalid_argument', message: /train with 8 inner steps and 2 fragments, and this side with 4 and 1/ },
  );
  await goesOn(stays, 10);
  assert.ok(served.runs, served.text);
  await stays.trainer.leave();
  await assert.rejects(stays.ended, { code: 'cancelled' });
});
