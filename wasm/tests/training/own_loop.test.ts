// Tests of reform(), revoke() and epoch in loops of programs' own, in Node and in Chromium, with native ranks (native_trainer --loop).
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test as nodeTest, type TestContext } from 'node:test';
import type { JoinOptions } from '../../src/node.js';
import { newDiary } from './elastic_program.js';
import { Installed, nativeTrainer, Records, serve, serveTabs, Tab } from './elastic_records.js';
import { OwnLoop } from './own_loop.js';
import { Served } from './served.js';

const test = (name: string, run: (context: TestContext) => Promise<void>): unknown => nodeTest(name, { timeout: 120_000 }, run);
const installed = new Installed();

interface Guest {
  readonly loop: OwnLoop;
  readonly ended: Promise<void>;
}

/** A guest of this process. */
async function begin(where: JoinOptions, records: Records): Promise<Guest> {
  const diary = newDiary();
  records.diaries.push(diary);
  const loop = new OwnLoop(await installed.ringlet.join(where), diary);
  return { loop, ended: loop.run() };
}

/** Waits until it holds, or the guest has ended. */
async function until({ loop, ended }: Guest, holds: (loop: OwnLoop) => boolean): Promise<void> {
  while (!loop.isOver && !holds(loop)) await new Promise((resolve) => setTimeout(resolve, 5));
  if (loop.isOver) await ended;
}
const goesOn = (guest: Guest, size: number, steps: number): Promise<void> => {
  const from = guest.loop.diary.journal.length;
  const isOfAll = ([, ranks]: readonly [number, number, ...unknown[]]): boolean => ranks === size;
  return until(guest, ({ diary }) => diary.journal.slice(from).filter(isOfAll).length >= steps);
};

/** What the state has in this place after so many steps. */
const wanted = (i: number, steps: number): number => {
  let sum = 0;
  for (let step = 0; step < steps; ++step) sum += (step * 7 + i) % 13;
  return sum;
};

/** Waits until the guest of another process has counted a step. */
async function counts(guest: ChildProcess): Promise<void> {
  for (;;) {
    const [data] = (await once(guest.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    if (Number(data.toString().trim().split('\n').at(-1)) > 0) return;
  }
}

test('guests go on by reform() when a guest or a native rank is killed, and when either side revokes the epoch', async (context) => {
  const records = new Records(context);
  const program = await installed.write('own_loop_guest');
  const served = serve(context, records, 2, 2, 0, ['--loop']);
  const url = await served.link();
  const goes = spawn(process.execPath, [program, url], { stdio: ['ignore', 'pipe', 'inherit'] });
  context.after(() => goes.kill('SIGKILL'));
  const stays = await begin({ url }, records);
  const { changes } = stays.loop;
  assert.equal(stays.loop.world.size, 4);
  await counts(goes);
  const place = ({ world }: OwnLoop): number => world.rank;

  // Another guest dies: the native ranks are who they were.
  const [own, epoch] = [place(stays.loop), stays.loop.world.epoch];
  assert.ok(epoch > 0);
  goes.kill('SIGKILL');
  await goesOn(stays, 3, 10);
  const afterGuest = changes.at(-1);
  assert.deepEqual([afterGuest?.code, afterGuest?.culprit], ['peer_lost', 5 - own]);
  assert.deepEqual([afterGuest?.before, afterGuest?.lost], [[0, 1, own], [5 - own]]);
  assert.ok((afterGuest?.epoch ?? 0) > epoch);

  // Another one comes, whose core runs in a Worker.
  const comes = await begin({ url, dedicatedWorker: true }, records);
  await goesOn(stays, 4, 10);
  await goesOn(comes, 4, 10);

  // Each side ends an epoch on purpose.
  const revokes = async (culprit: number, revoke: () => Promise<void> | void): Promise<void> => {
    const known = [stays, comes].map(({ loop }) => loop.changes.length);
    await revoke();
    for (const [at, guest] of [stays, comes].entries()) {
      await until(guest, ({ changes: seen }) =>
        seen.slice(known[at]).some(({ code, culprit: rank }) => code === 'cancelled' && rank === culprit),
      );
      await goesOn(guest, 4, 10);
    }
  };
  for (const { loop } of [stays, comes])
    await revokes(place(loop), async () => {
      await Promise.all([loop.world.revoke(), loop.world.revoke()]);
    });
  await revokes(0, () => writeFileSync(join(records.folder, 'journals', 'revoke'), ''));
  assert.match(served.text, /cancelled, rank [23]\n/);

  // Rank 0 dies: the other native rank takes its place.
  const last = place(stays.loop);
  served.kill(0);
  await goesOn(stays, 3, 10);
  const afterNative = changes.find(({ lost }) => lost.includes(0));
  assert.equal(afterNative?.before[0], 1);
  assert.ok(afterNative.before.slice(1).includes(last));
  records.end();
  await Promise.all([stays.ended, comes.ended]);
  assert.equal(await served.exitCode, 0, served.text);
  const steps = stays.loop.model.steps[0] ?? 0;
  records.check(steps);
  for (const { loop } of [stays, comes]) for (const i of [0, 1, 4999]) assert.equal(loop.model.exact[i], wanted(i, steps));
});

test('reform() ends by a signal or its time, and may be called again; then nobody is there any more', async (context) => {
  const records = new Records(context);
  const served = serve(context, records, 1, 1, 0, ['--loop']);
  const url = await served.link();
  const failures: string[] = [];
  const onProgress: JoinOptions['onProgress'] = (progress) => {
    if (progress.kind === 'failed') failures.push(progress.failure.code);
  };
  const world = await installed.ringlet.join({ url, connectTimeout: 2000, onProgress });
  await assert.rejects(world.reform(), { code: 'invalid_argument', message: /has not failed/ });
  await world.revoke();
  await world.revoke();
  await assert.rejects(world.barrier(), { code: 'cancelled', rank: 1, message: /has ended the epoch/ });
  const aborted = new AbortController();
  const waiting = world.reform({ signal: aborted.signal });
  aborted.abort('enough');
  await assert.rejects(waiting, { code: 'aborted', cause: 'enough' });
  await assert.rejects(world.reform({ timeout: 1 }), { code: 'timed_out', message: /within 1 ms, since rank 1 has ended the epoch/ });
  const next = await world.reform();
  assert.deepEqual([next.before, next.lost, next.cause.code], [[0, 1], [], 'cancelled']);
  assert.ok(next.world.epoch > world.epoch);
  assert.equal(typeof next.lineage, 'bigint');
  await assert.rejects(world.reform(), { code: 'invalid_argument', message: /has left/ });
  await assert.rejects(world.revoke(), { code: 'invalid_argument', message: /has left/ });

  served.kill(0);
  while (failures.at(-1) !== 'peer_lost') await new Promise((resolve) => setTimeout(resolve, 5));
  await assert.rejects(next.world.reform(), {
    code: 'peer_lost',
    message: /could not be joined again at any of .* within 2000 ms: no seat at/,
  });
  await next.world.leave();
  await assert.rejects(next.world.reform(), { code: 'invalid_argument', message: /has left/ });
});

test('a group that is not elastic has one world', async (context) => {
  const records = new Records(context);
  const program = [nativeTrainer, '10', '1', records.journals];
  const served = Served.start({ ranks: 1, browsers: 1, steps: 10, elastic: false, program, page: records.folder });
  context.after(() => served.stop());
  for (const world of [await installed.ringlet.join({ url: await served.link() }), await installed.ringlet.alone()]) {
    assert.equal(world.epoch, 0);
    await assert.rejects(world.reform(), { code: 'invalid_argument', message: /not elastic/ });
    await assert.rejects(world.revoke(), { code: 'invalid_argument', message: /not elastic/ });
    await world.leave();
  }
});

test('a program in Node ends when its group has failed, also where it does not leave', async (context) => {
  const records = new Records(context);
  const program = [nativeTrainer, '10', '1', records.journals, '--loop'];
  const guest = await installed.write('unleft_guest');
  for (const worker of [false, true]) {
    const served = Served.start({ ranks: 1, browsers: 1, steps: 10, elastic: false, program, page: records.folder });
    context.after(() => served.stop());
    const stays = spawn(process.execPath, [guest, await served.link(), String(worker)], { stdio: ['ignore', 'pipe', 'inherit'] });
    context.after(() => stays.kill('SIGKILL'));
    let said = '';
    for await (const data of stays.stdout) {
      if (said === '') served.kill(0);
      said += String(data);
    }
    assert.equal(said, 'joined\npeer_lost 0\npeer_lost 0\nleft\n');
  }
});

test('tabs with a loop of their own go on when a native rank is killed, or one of them revokes the epoch', async (context) => {
  const records = new Records(context);
  const { served, browser, link } = await serveTabs(context, records, { ranks: 2, steps: 0, program: 'own_loop_tab', more: ['--loop'] });
  const tabs = [await Tab.open(context, browser, link, records), await Tab.open(context, browser, link, records)] as const;
  for (const tab of tabs) await tab.goesOn(10);
  await tabs[0].call('revoke');
  for (const tab of tabs) await tab.goesOn(10);
  served.kill(1);
  for (const tab of tabs) await tab.goesOn(10);
  records.end();
  for (const tab of tabs) assert.equal((await tab.ends()).end, 'well');
  assert.equal(await served.exitCode, 0, served.text);
  records.check((records.diaries[0]?.journal.at(-1)?.[0] ?? 0) + 1);
  for (const { changes } of records.diaries)
    assert.ok(
      changes.some(({ cause }) => /has ended the epoch/.test(cause)),
      JSON.stringify(changes),
    );
});
