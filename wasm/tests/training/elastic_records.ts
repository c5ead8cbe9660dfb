// What the tests of groups that go on have in common: the package as its users get it, native ranks, tabs, and what all of them have done.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { after, before, type TestContext } from 'node:test';
import { build } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { openPage, startChromium } from '../browser/chromium.js';
import type * as Package from '../../src/node.js';
import type { ElasticTrainer } from '../../src/node.js';
import { batch, type Diary, type Line, type Model } from './elastic_program.js';
import { programs, Served } from './served.js';

const built = resolve(process.env['RINGLET_NPM'] ?? 'build/npm');
const modules = resolve(process.env['RINGLET_NODE_MODULES'] ?? 'wasm/node_modules');
// The bundles of the tests are in node_modules/.tests/training.
const sources = fileURLToPath(new URL('../../../tests/training', import.meta.url));
export const nativeTrainer = join(dirname(programs), 'tests', 'native_trainer');

/** The package as its users get it, beside what it needs, while the tests of a file run. */
export class Installed {
  folder = '';
  ringlet!: typeof Package;

  constructor() {
    before(async () => {
      this.folder = mkdtempSync(join(tmpdir(), 'ringlet-installed-'));
      mkdirSync(join(this.folder, 'node_modules'));
      cpSync(built, join(this.folder, 'node_modules/ringlet'), { recursive: true });
      symlinkSync(join(modules, 'ws'), join(this.folder, 'node_modules/ws'));
      this.ringlet = (await import(pathToFileURL(join(this.folder, 'node_modules/ringlet/dist/node.js')).href)) as typeof Package;
    });
    after(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Writes a program of these tests beside the package, and returns its file. */
  async write(name: string): Promise<string> {
    const outfile = join(this.folder, `${name}.mjs`);
    const entryPoints = [join(sources, `${name}.ts`)];
    await build({ entryPoints, outfile, bundle: true, format: 'esm', target: 'es2022', platform: 'node', packages: 'external' });
    return outfile;
  }
}

/** What the ranks of a run have done. */
export class Records {
  readonly folder = mkdtempSync(join(tmpdir(), 'ringlet-elastic-'));
  readonly diaries: Diary[] = [];

  constructor(context: TestContext) {
    context.after(() => rmSync(this.folder, { recursive: true, force: true }));
    mkdirSync(this.journals);
    // For guests in Node; makePage() replaces it.
    writeFileSync(join(this.folder, 'index.html'), '<!doctype html><title>none</title>');
  }

  get journals(): string {
    return join(this.folder, 'journals');
  }

  natives(): Line[][] {
    return readdirSync(this.journals).map((name) =>
      readFileSync(join(this.journals, name), 'utf8')
        .split('\n')
        // The last line of a process that was killed may lack its end.
        .filter((line) => /^\d+ \d+ \d+ [0-9a-f]{8}$/.test(line))
        .map((line) => line.split(' '))
        .map(([step, ranks, epoch, hash]): Line => [Number(step), Number(ranks), Number(epoch), hash ?? '']),
    );
  }

  /** Native ranks with a loop of their own end it, for all, with one of the next steps. */
  end(): void {
    writeFileSync(join(this.journals, 'end'), '');
  }

  /** Every rank that took a step took it in the same epoch and had the same state after it, none of these steps was left out, and none was done twice. */
  check(steps: number): void {
    const known = new Map<number, string>();
    for (const journal of [...this.natives(), ...this.diaries.map((diary) => diary.journal)]) {
      let last = -1;
      for (const [step, ranks, epoch, hash] of journal) {
        assert.ok(step > last, `step ${step} after ${last}`);
        last = step;
        const text = `${ranks} ranks of epoch ${epoch}, ${hash}`;
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
export function checkModel({ exact, mixed, steps }: Model, done: number): void {
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

export function serve(context: TestContext, records: Records, ranks: number, browsers: number, steps: number, more: string[] = []): Served {
  const program = [nativeTrainer, String(steps), '1', records.journals, ...more];
  const served = Served.start({ ranks, browsers, steps, program, page: records.folder });
  context.after(() => served.stop());
  return served;
}

/** A native rank that `ringlet serve` has not started: its settings are the environment alone. */
export class ByHand {
  said = '';
  readonly ended: Promise<number | null>;
  readonly #process: ChildProcess;

  /** `door` is a socket that listens, which it gets. */
  constructor(context: TestContext, records: Records, steps: number, settings: Readonly<Record<string, string>>, door?: number) {
    const env = { ...process.env, ...settings, ...(door === undefined ? {} : { RINGLET_DOOR_FD: '3' }) };
    const stdio: StdioOptions = ['ignore', 'ignore', 'pipe', ...(door === undefined ? [] : [door])];
    this.#process = spawn(nativeTrainer, [String(steps), '30', records.journals], { env, stdio });
    this.#process.stderr?.on('data', (text: Buffer) => (this.said += text.toString()));
    this.ended = once(this.#process, 'close').then(([code]) => code as number | null);
    context.after(() => this.kill());
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }
}

/** The page on which a tab runs a program of these tests. */
export async function makePage(folder: string, steps: number, pause: number, program = 'elastic_tab'): Promise<void> {
  await build({
    entryPoints: [join(sources, `${program}.ts`)],
    outfile: join(folder, 'tab.js'),
    bundle: true,
    format: 'esm',
    target: 'es2022',
  });
  cpSync(join(built, 'dist'), join(folder, 'ringlet'), { recursive: true, filter: (name) => !/\.d\.ts$|node/.test(name) });
  const head = `<meta charset="utf-8"><title>tab</title><meta name="plan" content="${steps} ${pause}">`;
  writeFileSync(join(folder, 'index.html'), `<!doctype html>${head}<script type="module" src="tab.js"></script>`);
}

/** Native ranks, the link for two tabs, which run that program for `turns` steps or averages, and a browser for them. */
export async function serveTabs(
  context: TestContext,
  records: Records,
  run: { ranks: number; steps: number; turns?: number; pause?: number; program?: string; more?: string[] },
): Promise<{ served: Served; browser: Browser; link: string }> {
  await makePage(records.folder, run.turns ?? run.steps, run.pause ?? 0, run.program);
  const browser = await startChromium();
  context.after(() => browser.close());
  const served = serve(context, records, run.ranks, 2, run.steps, run.more);
  return { served, browser, link: await served.link() };
}

/** A tab of a real browser. */
export class Tab {
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

  /** By native rank of its world. */
  doors(): Promise<readonly string[]> {
    return this.#page.evaluate(async () => {
      const { world } = (globalThis as unknown as { trainer: ElasticTrainer }).trainer;
      return (await world?.inner.engine.worldState())?.doors ?? [];
    });
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

  /** Calls a function that its program has put there. */
  async call(name: string): Promise<void> {
    await this.#page.evaluate((global) => (globalThis as unknown as Record<string, () => Promise<void>>)[global]?.(), name);
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
