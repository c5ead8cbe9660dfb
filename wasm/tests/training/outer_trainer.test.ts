// Tests of OuterTrainer in Node and in Chromium, in one world with that of native ranks (tests/wasm/native_trainer.cpp --outer).
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test as nodeTest, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { OuterTrainerOptions } from '../../src/node.js';
import { openPage } from '../browser/chromium.js';
import { Installed, Records, serve, serveTabs } from './elastic_records.js';
import { type Deed, hashOf, interval, Model, OuterProgram, type OuterDiary, pull } from './outer_program.js';
import { replay } from './outer_reference.js';

const test = (name: string, run: (context: TestContext) => Promise<void>): unknown => nodeTest(name, { timeout: 120_000 }, run);
const installed = new Installed();

interface Guest extends OuterProgram {
  readonly ended: Promise<void>;
}

/** A guest of this process. */
function begin(url: string, averages: number, wire: OuterTrainerOptions['wire'], overlap = 1): Guest {
  const program = new OuterProgram(installed.ringlet.OuterTrainer, { url }, wire, overlap);
  return Object.assign(program, { ended: program.run(averages) });
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

/** After each average all native ranks had the same bits. Returns the hashes, by the number of averages. */
function hashesOf(records: Records, averages: number): Map<number, string> {
  const known = new Map<number, string>();
  for (const [average, , , hash] of records.natives().flat()) {
    assert.equal(known.get(average) ?? hash, hash, `average ${average}`);
    known.set(average, hash);
  }
  assert.equal(known.size, averages + 1);
  return known;
}

/** What each native rank has done. They take part in every average. */
function deedsOfNatives({ journals }: Records): Deed[][] {
  return readdirSync(journals).map((name) =>
    readFileSync(join(journals, name), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .filter((words) => words.join(' ') !== '' && words[0] !== '0')
      .map((words): Deed => (words[0] === 'step' ? ['step', Number(words[1]), Number(words[2])] : ['average', Number(words[0]) - 1])),
  );
}

/** Every guest that was there had the bits of the native ranks, and those of the end. */
function checkBits(records: Records, averages: number, diaries: readonly OuterDiary[]): void {
  const known = hashesOf(records, averages);
  for (const { hashes } of diaries) for (const [done, hash] of hashes) assert.equal(hash, known.get(done), `after ${done} averages`);
}

/** The training is what the method says, of those that were there in each average. */
function checkValues(records: Records, averages: number, diaries: readonly OuterDiary[]): void {
  const wanted = replay([...deedsOfNatives(records), ...diaries.map(({ deeds }) => deeds)], averages);
  const ended = diaries.filter(({ values }) => values.length > 0);
  assert.ok(ended.length > 0);
  for (const { values } of ended) {
    const furthest = Math.max(...values.map((value, i) => Math.abs(value - (wanted[i] ?? NaN))));
    assert.ok(furthest < 1e-5, `as far away as ${furthest}`);
  }
}

for (const wire of [undefined, { blocks: 'int8', feedback: true, leastElements: 0 }] as const) {
  test(`native ranks and Node have the same bits of the shared parameters (${wire?.blocks ?? 'f32 and f64'})`, async (context) => {
    const records = new Records(context);
    const averages = 40;
    const served = serve(context, records, 2, 2, averages * interval, ['--outer', wire?.blocks ?? 'own', '1']);
    const url = await served.link();
    const guests = [begin(url, averages, wire), begin(url, averages, wire)];
    for (const { ended } of guests) await ended;
    assert.equal(await served.exitCode, 0, served.text);
    checkBits(
      records,
      averages,
      guests.map(({ diary }) => diary),
    );
    for (const { trainer, model } of guests) {
      assert.equal(hashOf(model.arrays), hashesOf(records, averages).get(averages));
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
  const averages = 400;
  const served = serve(context, records, 3, 2, averages * interval, ['--outer', 'own', '1']);
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
  checkBits(records, averages, [stays.diary, goes.diary, comes.diary]);
  for (const { trainer, model } of [stays, comes]) {
    assert.equal(hashOf(model.arrays), hashesOf(records, averages).get(averages));
    await trainer.leave();
  }
  // It was given the state of a training that had gone on.
  const [, given = 0] = comes.diary.deeds.find(([kind]) => kind === 'state') ?? [];
  assert.ok(given >= 30, JSON.stringify(comes.diary.deeds.slice(0, 10)));
});

test('a guest with other inner steps is told so, and the others go on', async (context) => {
  const records = new Records(context);
  const served = serve(context, records, 2, 1, 4_000_000, ['--outer', 'own', '1']);
  const url = await served.link();
  const stays = begin(url, 1_000_000, undefined);
  await goesOn(stays, 5);
  const model = new Model();
  const other = new installed.ringlet.OuterTrainer({ url }, { layer: model.layer, narrow: model.narrow }, { innerSteps: 4 });
  await assert.rejects(
    other.run(4, async () => 1),
    { code: 'mismatch', message: /the native ranks are to train 1000000 averages, and this side, rank [23], is to train 1 averages/ },
  );
  await assert.rejects(
    other.run(4_000_000, ({ number, rank }) => pull(model.arrays, number, rank)),
    { code: 'invalid_argument', message: /train with 8 inner steps and 2 fragments, and this side with 4 and 1/ },
  );
  await goesOn(stays, 10);
  assert.ok(served.runs, served.text);
  await stays.trainer.leave();
  await assert.rejects(stays.ended, { code: 'cancelled' });
});

/** A tab that trains on its page's thread, or whose core runs in a Worker. */
class OuterTab {
  private constructor(readonly page: Page) {}

  static async open(context: TestContext, browser: Browser, link: string, inWorker: boolean): Promise<OuterTab> {
    const { page } = await openPage(browser);
    context.after(() => page.context().close());
    await page.addInitScript((where) => Object.assign(globalThis, { inWorker: where }), inWorker);
    await page.goto(link);
    await page.waitForFunction(() => 'diary' in globalThis);
    return new OuterTab(page);
  }

  diary(): Promise<OuterDiary> {
    return this.page.evaluate(() => (globalThis as unknown as { diary: OuterDiary }).diary);
  }

  async goesOn(averages: number): Promise<void> {
    const from = (await this.diary()).hashes.length;
    await this.page.waitForFunction(
      (least) => {
        const { hashes, end } = (globalThis as unknown as { diary: OuterDiary }).diary;
        return hashes.length >= least || end !== '';
      },
      from + averages,
      { timeout: 60_000 },
    );
    assert.equal((await this.diary()).end, '');
  }

  /** Closes the tab between two inner steps, and returns what it had done by then. */
  async close(): Promise<OuterDiary> {
    await this.page.evaluate(() => (globalThis as unknown as { hold(): Promise<void> }).hold());
    const diary = await this.diary();
    await this.page.context().close();
    return diary;
  }

  async ends(): Promise<OuterDiary> {
    await this.page.waitForFunction(() => (globalThis as unknown as { diary: OuterDiary }).diary.end !== '', undefined, {
      timeout: 100_000,
    });
    const diary = await this.diary();
    assert.equal(diary.end, 'well');
    return diary;
  }
}

const serveOuterTabs = (context: TestContext, records: Records, averages: number): ReturnType<typeof serveTabs> =>
  serveTabs(context, records, {
    ranks: 2,
    steps: averages * interval,
    turns: averages,
    program: 'outer_tab',
    more: ['--outer', 'own', '0'],
  });

test('tabs and native ranks train as the method says, with the same bits', async (context) => {
  const records = new Records(context);
  const averages = 60;
  const { served, browser, link } = await serveOuterTabs(context, records, averages);
  const tabs = await Promise.all([false, true].map((inWorker) => OuterTab.open(context, browser, link, inWorker)));
  const diaries = await Promise.all(tabs.map((tab) => tab.ends()));
  assert.equal(await served.exitCode, 0, served.text);
  checkBits(records, averages, diaries);
  checkValues(records, averages, diaries);
  for (const { deeds, hashes } of diaries) {
    // They have been there from the beginning to the end.
    assert.equal(deeds.filter(([kind]) => kind === 'average').length, averages);
    assert.equal(hashes.at(-1)?.[0], averages);
  }
});

test('a tab is closed in the midst of its inner steps and another one comes, and the training is that of those who were there', async (context) => {
  const records = new Records(context);
  const averages = 300;
  const { served, browser, link } = await serveOuterTabs(context, records, averages);
  const [stays, goes] = await Promise.all([OuterTab.open(context, browser, link, false), OuterTab.open(context, browser, link, true)]);
  await goes.goesOn(10);
  const gone = await goes.close();
  await stays.goesOn(10);
  const comes = await OuterTab.open(context, browser, link, true);
  await comes.goesOn(10);
  const diaries = [gone, ...(await Promise.all([stays.ends(), comes.ends()]))];
  assert.equal(await served.exitCode, 0, served.text);
  checkBits(records, averages, diaries);
  checkValues(records, averages, diaries);
  const counts = diaries.map(({ deeds }) => deeds.filter(([kind]) => kind === 'average').length);
  assert.ok((counts[0] ?? 0) >= 10 && (counts[0] ?? 0) < averages - 20 && (counts[2] ?? 0) >= 10, counts.join());
  const [, given = 0] = diaries[2]?.deeds.find(([kind]) => kind === 'state') ?? [];
  assert.ok(given >= 20, `its state is that after ${given} averages`);
});
