// Tests of ElasticTrainer in Node and in Chromium, in one world with that of native ranks (tests/wasm/native_trainer.cpp).
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { after, before, test as nodeTest, type TestContext } from 'node:test';
import { build } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { openPage, startChromium } from '../browser/chromium.js';
import type * as Package from '../../src/node.js';
import { batch, type Diary, type Line, Model, newDiary, train } from './elastic_program.js';
import { programs, Served } from './served.js';

const test = (name: string, run: (context: TestContext) => Promise<void>): unknown => nodeTest(name, { timeout: 120_000 }, run);
const built = resolve(process.env['RINGLET_NPM'] ?? 'build/npm');
const modules = resolve(process.env['RINGLET_NODE_MODULES'] ?? 'wasm/node_modules');
// The bundle of this file is in node_modules/.tests/training.
const sources = fileURLToPath(new URL('../../../tests/training', import.meta.url));
const nativeTrainer = join(dirname(programs), 'tests', 'native_trainer');

let ringlet: typeof Package;
let installed: string;
before(async () => {
  // The package as its users get it, beside what it needs.
  installed = mkdtempSync(join(tmpdir(), 'ringlet-installed-'));
  mkdirSync(join(installed, 'node_modules'));
  cpSync(built, join(installed, 'node_modules/ringlet'), { recursive: true });
  symlinkSync(join(modules, 'ws'), join(installed, 'node_modules/ws'));
  ringlet = (await import(pathToFileURL(join(installed, 'node_modules/ringlet/dist/node.js')).href)) as typeof Package;
});
after(() => rmSync(installed, { recursive: true, force: true }));

/** What the ranks of a run have done. */
class Records {
  readonly folder = mkdtempSync(join(tmpdir(), 'ringlet-elastic-'));
  readonly diaries: Diary[] = [];

  constructor(context: TestContext) {
    context.after(() => rmSync(this.folder, { recursive: true, force: true }));
    mkdirSync(this.journals);
  }

  get journals(): string {
    return join(this.folder, 'journals');
  }

  natives(): Line[][] {
    return readdirSync(this.journals).map((name) =>
      readFileSync(join(this.journals, name), 'utf8')
        .split('\n')
        // The last line of a process that was killed may lack its end.
        .filter((line) => /^\d+ \d+ [0-9a-f]{8}$/.test(line))
        .map((line) => line.split(' '))
        .map(([step, ranks, hash]): Line => [Number(step), Number(ranks), hash ?? '']),
    );
  }

  /** Every rank that took a step had the same state after it, none of these steps was left out, and none was done twice. */
  check(steps: number): void {
    const known = new Map<number, string>();
    for (const journal of [...this.natives(), ...this.diaries.map((diary) => diary.journal)]) {
      let last = -1;
      for (const [step, ranks, hash] of journal) {
        assert.ok(step > last, `step ${step} after ${last}`);
        last = step;
        const text = `${ranks} ranks, ${hash}`;
        assert.equal(known.get(step) ?? text, text, `step ${step}`);
        known.set(step, text);
      }
    }
    const all = [...known.keys()].sort((one, other) => one - other);
    assert.deepEqual(all.slice(0, steps), [...Array(steps).keys()]);
    for (const { mistakes } of this.diaries) assert.deepEqual(mistakes, []);
  }
}

/** Every sample of every step has been used once. */
function checkModel({ exact, mixed, steps }: Model, done: number): void {
  assert.equal(steps[0], done);
  exact.forEach((value, i) => {
    let wanted = 0;
    for (let step = 0; step < done; ++step) wanted += (step * 7 + i) % 13;
    assert.equal(value, wanted, `element ${i}`);
  });
  mixed.forEach((value, i) => {
    let wanted = 0;
    for (let step = 0; step < done; ++step)
      for (let sample = 0; sample < batch; ++sample) wanted += (0.125 * ((step * 31 + sample * 17 + i) % 101)) / batch;
    assert.ok(Math.abs(value - wanted) < 1e-4 * wanted, `${value}, and not ${wanted}`);
  });
}

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
  const ended = train(ringlet.ElasticTrainer, { url }, steps, 1, diary, (trainer, model) => (guest = { trainer, model }));
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

function serve(context: TestContext, records: Records, ranks: number, browsers: number, steps: number, more: string[] = []): Served {
  const program = [nativeTrainer, String(steps), '1', records.journals, ...more];
  const served = Served.start({ ranks, browsers, steps, program, page: records.folder });
  context.after(() => served.stop());
  return served;
}

test('native ranks and Node train one model, and go on when any of them is lost', async (context) => {
  const records = new Records(context);
  writeFileSync(join(records.folder, 'index.html'), '<!doctype html><title>none</title>');
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
  writeFileSync(join(records.folder, 'index.html'), '<!doctype html><title>none</title>');
  const steps = 1_000_000;
  const served = serve(context, records, 2, 1, steps);
  const url = await served.link();
  const stays = begin(url, steps, records);
  await goesOn(stays, 5);
  const stranger = new ringlet.ElasticTrainer({ url }, { model: { exact: new Float32Array(4) } });
  await assert.rejects(
    stranger.run({ steps, batch }, async () => undefined),
    { code: 'mismatch', message: /exact/ },
  );
  const failing = new ringlet.ElasticTrainer({ url }, { model: { ...new Model() } });
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

test('a training whose state is in shards lets no guest in, and says so', async (context) => {
  const records = new Records(context);
  writeFileSync(join(records.folder, 'index.html'), '<!doctype html><title>none</title>');
  const served = serve(context, records, 2, 1, 1_000_000, ['--sharded']);
  const url = await served.link();
  // The second one finds that they have gone on.
  for (let guest = 0; guest < 2; ++guest) {
    const trainer = new ringlet.ElasticTrainer({ url }, { model: new Float32Array(4) });
    await assert.rejects(
      trainer.run({ steps: 1, batch }, async () => undefined),
      { code: 'invalid_argument', message: /in shards/ },
    );
  }
  assert.ok(served.runs, served.text);
});

/** The page on which a tab trains. */
async function makePage(folder: string, steps: number, pause: number): Promise<void> {
  await build({
    entryPoints: [join(sources, 'elastic_tab.ts')],
    outfile: join(folder, 'tab.js'),
    bundle: true,
    format: 'esm',
    target: 'es2022',
  });
  cpSync(join(built, 'dist'), join(folder, 'ringlet'), { recursive: true, filter: (name) => !/\.d\.ts$|node/.test(name) });
  const head = `<meta charset="utf-8"><title>tab</title><meta name="plan" content="${steps} ${pause}">`;
  writeFileSync(join(folder, 'index.html'), `<!doctype html>${head}<script type="module" src="tab.js"></script>`);
}

/** A tab of a real browser. */
class Tab {
  readonly #page: Page;
  readonly #records: Records;

  private constructor(page: Page, records: Records) {
    this.#page = page;
    this.#records = records;
  }

  static async open(context: TestContext, browser: Browser, link: string, records: Records): Promise<Tab> {
    const { page } = await openPage(browser);
    context.after(() => page.context().close());
    await page.goto(link);
    return new Tab(page, records);
  }

  diary(): Promise<Diary> {
    return this.#page.evaluate(() => (globalThis as unknown as { diary: Diary }).diary);
  }

  async goesOn(steps: number): Promise<void> {
    const from = (await this.diary()).journal.length;
    await this.#page.waitForFunction(
      (least) => {
        const { journal, end } = (globalThis as unknown as { diary: Diary }).diary;
        return journal.length >= least || end !== '';
      },
      from + steps,
      { timeout: 60_000 },
    );
  }

  /** Keeps what it has done: a page that is reloaded or closed forgets it. */
  async keep(): Promise<Diary> {
    const diary = await this.diary();
    this.#records.diaries.push(diary);
    return diary;
  }

  async reload(): Promise<void> {
    await this.keep();
    await this.#page.reload();
  }

  async close(): Promise<void> {
    await this.keep();
    await this.#page.context().close();
  }

  async freeze(milliseconds: number): Promise<void> {
    const devtools = await this.#page.context().newCDPSession(this.#page);
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    await devtools.send('Page.setWebLifecycleState', { state: 'active' });
  }

  async ends(): Promise<Diary> {
    await this.#page.waitForFunction(() => (globalThis as unknown as { diary: Diary }).diary.end !== '', undefined, { timeout: 120_000 });
    return this.keep();
  }
}

test('native ranks and tabs train one model, step for step, while ranks are killed and tabs closed, reloaded and frozen', async (context) => {
  const records = new Records(context);
  const steps = 1000;
  await makePage(records.folder, steps, 2);
  const browser = await startChromium();
  context.after(() => browser.close());
  const served = serve(context, records, 3, 2, steps);
  const link = await served.link();
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
