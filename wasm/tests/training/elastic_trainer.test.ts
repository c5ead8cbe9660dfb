// Tests of ElasticTrainer in Node and in Chromium, in one world with that of native ranks (tests/wasm/native_trainer.cpp).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { test as nodeTest, type TestContext } from 'node:test';
import type * as Package from '../../src/node.js';
import { batch, type Diary, Model, newDiary, train } from './elastic_program.js';
import { startChromium } from '../browser/chromium.js';
import { servePage } from '../browser/page_server.js';
import { ByHand, checkModel, Installed, makePage, nativeTrainer, Records, serve, serveTabs, Tab } from './elastic_records.js';

const test = (name: string, run: (context: TestContext) => Promise<void>): unknown => nodeTest(name, { timeout: 120_000 }, run);
const installed = new Installed();

interface Guest {
  readonly diary: Diary;
  readonly trainer: Package.ElasticTrainer;
  readonly model: Model;
  readonly ended: Promise<void>;
}

/** A guest of this process. */
function begin(url: string, steps: number, records: Records): Guest {
  const diary = newDiary();
  records.diaries.push(diary);
  let guest: Omit<Guest, 'ended' | 'diary'> | undefined;
  const ended = train(installed.ringlet.ElasticTrainer, { url }, steps, 1, diary, (trainer, model) => (guest = { trainer, model }));
  if (guest === undefined) throw new Error('training has not begun');
  return { ...guest, diary, ended };
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
};
const goesOn = async ({ diary, ended }: Guest, steps: number): Promise<void> => {
  const from = diary.journal.length;
  let over = false;
  const end = ended.finally(() => (over = true));
  // Where the training ends first, nothing may go on asking: Node would wait for that.
  await Promise.race([until(() => over || diary.journal.length >= from + steps), end]);
};

test('native ranks and Node train one model, and go on when any of them is lost', async (context) => {
  const records = new Records(context);
  const steps = 500;
  const checkpoints = join(records.folder, 'checkpoints');
  const served = serve(context, records, 3, 2, steps, [checkpoints]);
  const url = await served.link();
  const [stays, goes] = [begin(url, steps, records), begin(url, steps, records)];
  await goesOn(stays, 20);
  // Rank 0 dies, then a guest leaves, then another one comes.
  served.kill(0);
  await goesOn(stays, 20);
  await goesOn(goes, 20);
  await goes.trainer.leave();
  await assert.rejects(goes.ended, { code: 'cancelled' });
  await goesOn(stays, 20);
  const comes = begin(url, steps, records);
  await goesOn(comes, 20);
  await Promise.all([stays.ended, comes.ended]);
  assert.equal(await served.exitCode, 0, served.text);
  records.check(steps);
  for (const { model, diary } of [stays, comes]) {
    checkModel(model, steps);
    assert.equal(diary.journal.at(-1)?.[1], 4);
  }
  // Until then they are in the group, which keeps Node alive.
  for (const { trainer } of [stays, comes]) await trainer.leave();
  assert.ok(stays.diary.changes.length >= 3, JSON.stringify(stays.diary.changes));
  assert.ok(stays.diary.changes.every(({ cause }) => cause.length > 0));
  // The native ranks trained on while it was away.
  assert.ok(stays.diary.states.length >= 2, stays.diary.states.join());
  assert.deepEqual(readdirSync(checkpoints).filter((name) => name === 'step-00000500').length, 1);
});

test('a guest that trains something else is told so, and the others go on', async (context) => {
  const records = new Records(context);
  const steps = 1_000_000;
  const served = serve(context, records, 2, 1, steps);
  const url = await served.link();
  const stays = begin(url, steps, records);
  await goesOn(stays, 5);
  const stranger = new installed.ringlet.ElasticTrainer({ url }, { model: { exact: new Float32Array(4) } });
  await assert.rejects(
    stranger.run({ steps, batch }, async () => undefined),
    { code: 'mismatch', message: /exact/ },
  );
  const otherwise = new installed.ringlet.ElasticTrainer({ url }, { model: { ...new Model() } });
  await assert.rejects(
    otherwise.run({ steps, batch: batch + 1 }, async () => undefined),
    { code: 'mismatch', message: /plans differ/ },
  );
  const failing = new installed.ringlet.ElasticTrainer({ url }, { model: { ...new Model() } });
  const mistake = new Error('a mistake of the program');
  await assert.rejects(
    failing.run({ steps, batch }, () => Promise.reject(mistake)),
    (error) => error === mistake,
  );
  await goesOn(stays, 20);
  assert.ok(served.runs, served.text);
  await stays.trainer.leave();
  await assert.rejects(stays.ended, { code: 'cancelled' });
  records.check(stays.trainer.step);
  checkModel(stays.model, stays.trainer.step);
});

test('a native rank that joins with other settings is told so, and guests and native ranks go on', async (context) => {
  const records = new Records(context);
  const steps = 1_000_000;
  const served = serve(context, records, 2, 1, steps);
  const url = await served.link();
  const stays = begin(url, steps, records);
  await goesOn(stays, 5);
  const token = new URL(url).hash.replace('#token=', '');
  for (const [settings, message] of [
    [[String(steps - 1)], /plans differ: .* rank 2 is to train 999999 steps/],
    [[String(steps), '--sharded'], /plans differ: .* rank 2 is to train 1000000 steps of 64 samples of sharded state/],
  ] as const) {
    const { doors } = (await stays.trainer.world?.inner.engine.worldState()) ?? { doors: [] };
    const [ownSteps, ...more] = settings;
    const env = { ...process.env, RINGLET_JOIN: doors[0], RINGLET_TOKEN: token };
    const joins = spawn(nativeTrainer, [ownSteps, '1', records.journals, ...more], { env, stdio: ['ignore', 'ignore', 'pipe'] });
    context.after(() => joins.kill());
    let said = '';
    joins.stderr.on('data', (text: Buffer) => (said += text.toString()));
    const [code] = (await once(joins, 'close')) as [number];
    assert.notEqual(code, 0);
    assert.match(said, message);
    await goesOn(stays, 20);
  }
  assert.ok(served.runs, served.text);
  await stays.trainer.leave();
  await assert.rejects(stays.ended, { code: 'cancelled' });
  records.check(stays.trainer.step);
});

test('a training whose state is in shards lets no guest in, and says so', async (context) => {
  const records = new Records(context);
  const served = serve(context, records, 2, 1, 1_000_000, ['--sharded']);
  const url = await served.link();
  // The second one finds that they have gone on.
  for (let guest = 0; guest < 2; ++guest) {
    const trainer = new installed.ringlet.ElasticTrainer({ url }, { model: new Float32Array(4) });
    await assert.rejects(
      trainer.run({ steps: 1, batch }, async () => undefined),
      { code: 'invalid_argument', message: /in shards/ },
    );
  }
  assert.ok(served.runs, served.text);
});

test('native ranks that were started by hand let in Node and the tabs of another server at their doors, whichever is lost', async (context) => {
  const records = new Records(context);
  const steps = 350;
  await makePage(records.folder, steps, 0);
  const page = await servePage(records.folder);
  context.after(() => page.stop());
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as { port: number };
  const token = 'a token of this test, of many words';
  const settings = { RINGLET_TOKEN: token, RINGLET_LISTEN: '127.0.0.1', RINGLET_ORIGINS: page.url.replace(/\/$/, '') };
  const { fd } = (listener as Server & { _handle: { fd: number } })._handle;
  const first = new ByHand(context, records, steps, { ...settings, RINGLET_ELASTIC: 'on' }, fd);
  listener.close();
  const other = new ByHand(context, records, steps, { ...settings, RINGLET_JOIN: `127.0.0.1:${port}` });
  const browser = await startChromium();
  context.after(() => browser.close());
  const fragment = `#token=${encodeURIComponent(token)}`;
  const guest = begin(`ws://127.0.0.1:${port}/${fragment}`, steps, records);
  const tab = await Tab.open(context, browser, `${page.url}?at=127.0.0.1:${port}${fragment}`, records);
  const all = async (ranks: number): Promise<void> => {
    while ((await tab.diary()).journal.at(-1)?.[1] !== ranks) await tab.goesOn(1);
    await goesOn(guest, 20);
    await tab.goesOn(20);
  };
  await all(4);
  first.kill();
  await first.ended;
  await all(3);
  await guest.ended;
  assert.equal((await tab.ends()).end, 'well');
  assert.equal(await other.ended, 0, other.said);
  records.check(steps);
  checkModel(guest.model, steps);
  await guest.trainer.leave();
});

test('a tab goes on by the door of a native rank that has joined, when all that served its page are lost', async (context) => {
  const records = new Records(context);
  const steps = 300;
  await makePage(records.folder, steps, 0);
  const served = serve(context, records, 1, 1, steps);
  const browser = await startChromium();
  context.after(() => browser.close());
  const link = await served.link();
  const tab = await Tab.open(context, browser, link, records);
  await tab.goesOn(1);
  const [door = ''] = await tab.doors();
  const joined = new ByHand(context, records, steps, { RINGLET_TOKEN: new URL(link).hash.replace('#token=', ''), RINGLET_JOIN: door });
  while ((await tab.diary()).journal.at(-1)?.[1] !== 3) await tab.goesOn(1);
  served.kill(0);
  while ((await tab.diary()).journal.at(-1)?.[1] !== 2) await tab.goesOn(1);
  assert.equal((await tab.ends()).end, 'well');
  assert.equal(await joined.ended, 0, joined.said);
  records.check(steps);
});

test('native ranks and tabs train one model, step for step, while ranks are killed and tabs closed, reloaded and frozen', async (context) => {
  const records = new Records(context);
  const steps = 1000;
  const { served, browser, link } = await serveTabs(context, records, { ranks: 3, steps, pause: 2 });
  const stays = await Tab.open(context, browser, link, records);
  const goes = await Tab.open(context, browser, link, records);
  await stays.goesOn(20);
  for (const rank of [2, 0]) {
    served.kill(rank);
    await stays.goesOn(20);
  }
  await goes.close();
  await stays.goesOn(20);
  await stays.reload();
  await stays.goesOn(20);
  const comes = await Tab.open(context, browser, link, records);
  await comes.goesOn(20);
  await stays.freeze(1000);
  await stays.goesOn(20);
  const [one, other] = [await stays.ends(), await comes.ends()];
  assert.equal(one.end, 'well');
  assert.equal(other.end, 'well');
  assert.equal(await served.exitCode, 0, served.text);
  records.check(steps);
  assert.equal(one.journal.at(-1)?.[0], steps - 1);
  assert.deepEqual(one.journal.at(-1), other.journal.at(-1));
});
