// Tests of tabs that come and go while the others train. RINGLET_SOAK_MINUTES makes the last one longer.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test as nodeTest, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { desktop, openPage, screenshot, startChromium, type WatchedPage } from '../browser/chromium.js';
import { headline, sees } from './sees.js';
import { programs, Served, type ServeOptions } from './served.js';

const soakSeconds = Number(process.env['RINGLET_SOAK_MINUTES'] ?? 0.4) * 60;
const test = (name: string, run: (context: TestContext) => Promise<void>): unknown =>
  nodeTest(name, { timeout: 240_000 + soakSeconds * 1000 }, run);

let browser: Browser;
before(async () => {
  browser = await startChromium();
});
after(() => browser.close());

async function openTab(context: TestContext, link: string, where = browser): Promise<WatchedPage> {
  const opened = await openPage(where, { viewport: desktop });
  context.after(() => opened.page.context().close());
  await opened.page.goto(link);
  return opened;
}

async function begin(
  context: TestContext,
  options: ServeOptions,
  where = browser,
): Promise<{ served: Served; link: string; tabs: Page[] }> {
  const served = Served.start(options);
  context.after(() => served.stop());
  const link = await served.link();
  const tabs: Page[] = [];
  for (let tab = 0; tab < options.browsers; ++tab) tabs.push((await openTab(context, link, where)).page);
  for (const page of tabs) await trainsOn(served, page, 1);
  return { served, link, tabs };
}

const stepOf = async (page: Page): Promise<number> =>
  page.evaluate(() => Number.parseInt(document.getElementById('step')?.textContent ?? '', 10) || 0);

/** Waits until the tab has taken part in so many steps more. */
async function trainsOn(served: Served, page: Page, steps: number): Promise<void> {
  const from = await stepOf(page);
  await sees(served, page, `train on from step ${from}`, (options) =>
    page.waitForFunction(
      (least) => (Number.parseInt(document.getElementById('step')?.textContent ?? '', 10) || 0) >= least,
      from + steps,
      options,
    ),
  );
}

/** All headlines that the page has from now on. */
async function headlinesOf(page: Page): Promise<string[]> {
  const headlines: string[] = [];
  await page.exposeFunction('note', (text: string) => headlines.push(text));
  await page.evaluate(() => {
    const shown = document.getElementById('headline');
    const note = (globalThis as unknown as { note(text: string): void }).note;
    if (shown) new MutationObserver(() => note(shown.textContent ?? '')).observe(shown, { childList: true });
  });
  return headlines;
}

async function endsWell(served: Served, tabs: readonly Page[]): Promise<void> {
  for (const page of tabs) await headline(served, page, 'Finished');
  assert.equal(await served.exitCode, 0, served.text);
  const report = await served.report();
  for (const page of tabs) assert.ok((await page.locator('#detail').innerText()).includes(String(report['parameter_hash'])), served.text);
}

test('a tab that is closed is let go, another one comes, and all end with the same model', async (context) => {
  const { served, link, tabs } = await begin(context, { ranks: 2, browsers: 2, steps: 150 });
  const [stays, goes] = tabs as [Page, Page];
  // The headline may stand there for a moment only.
  const headlines = await headlinesOf(stays);
  await goes.context().close();
  while (!headlines.some((text) => text.startsWith('Rank'))) await trainsOn(served, stays, 1);
  await trainsOn(served, stays, 3);
  const { page: comes } = await openTab(context, link);
  await trainsOn(served, comes, 3);
  await endsWell(served, [stays, comes]);
});

test('between few averages tabs are closed and others come, native ranks die and are started again, and all end with the same model', async (context) => {
  const more = ['--inner-steps', '10', '--fragments', '2', '--overlap', '1'];
  const { served, link, tabs } = await begin(context, { ranks: 2, browsers: 2, steps: 1200, bounds: '1:2', more });
  const [stays, goes] = tabs as [Page, Page];
  await trainsOn(served, goes, 10);
  await goes.context().close();
  await trainsOn(served, stays, 10);
  const { page: comes } = await openTab(context, link);
  for (const page of [stays, comes]) await trainsOn(served, page, 10);
  for (const rank of [1, 0]) {
    served.kill(rank);
    await served.says(new RegExp(`rank ${rank} [^\\n]* is started again`));
    // All are one group again: where the last native rank is killed before that, they start anew.
    await served.says(new RegExp(`(is started again[^]*epoch \\d+: 4 ranks, [^]*){${2 - rank}}`));
    for (const page of [stays, comes]) await trainsOn(served, page, 20);
  }
  await endsWell(served, [stays, comes]);
  const report = await served.report();
  assert.equal(report['averages'], 240);
});

test('a tab that is reloaded comes back by itself, and nobody is asked', async (context) => {
  const { served, tabs } = await begin(context, { ranks: 1, browsers: 1, steps: 150 });
  const [page] = tabs as [Page];
  page.on('dialog', () => assert.fail('the page asked whether to leave it'));
  await page.reload();
  await trainsOn(served, page, 3);
  await endsWell(served, tabs);
});

test('a native rank that is killed, rank 0 too, is let go, and the tabs go on', async (context) => {
  const { served, tabs } = await begin(context, { ranks: 3, browsers: 2, steps: 150 });
  for (const rank of [2, 0]) {
    served.kill(rank);
    for (const page of tabs) await trainsOn(served, page, 5);
  }
  for (const page of tabs) await headline(served, page, 'Finished');
  assert.equal(await served.exitCode, 0, served.text);
});

test('native ranks that are killed are started again, and the link stays', async (context) => {
  const { served, link, tabs } = await begin(context, { ranks: 2, browsers: 1, steps: 400, bounds: '1:2' });
  const [page] = tabs as [Page];
  for (const rank of [0, 1]) {
    served.kill(rank);
    await served.says(new RegExp(`rank ${rank} [^\\n]* is started again`));
    // Both native ranks and the tab are one group again.
    await served.says(new RegExp(`(epoch \\d+: 3 ranks, [^]*){${rank + 1}}`));
    await trainsOn(served, page, 3);
  }
  const { page: comes } = await openTab(context, link);
  await trainsOn(served, comes, 3);
  await endsWell(served, [page, comes]);
});

test('where all native ranks are killed at once they start anew, and the tabs come in again', async (context) => {
  const { served, tabs } = await begin(context, { ranks: 2, browsers: 2, steps: 80, bounds: '1:2' });
  for (const rank of [1, 0]) served.kill(rank);
  await served.says(/starting anew, as a group of 2 ranks/);
  await endsWell(served, tabs);
});

test('a tab goes on with a native rank that has joined, when all that served its page are lost', async (context) => {
  const { served, link, tabs } = await begin(context, { ranks: 1, browsers: 1, steps: 1_000_000 });
  const [page] = tabs as [Page];
  const [, door = ''] = /RINGLET_JOIN=(\S+)/.exec(await served.says(/RINGLET_JOIN=\S+\s/)) ?? [];
  const env = { ...process.env, RINGLET_JOIN: door, RINGLET_TOKEN: new URL(link).hash.replace('#token=', '') };
  const joined = spawn(join(programs, 'train_text'), [], { env, stdio: 'ignore' });
  context.after(() => joined.kill());
  await served.says(/epoch \d+: 3 ranks/);
  await trainsOn(served, page, 3);
  served.kill(0);
  assert.notEqual(await served.exitCode, 0);
  await trainsOn(served, page, 20);
  // All ranks compare their parameters every five steps.
  assert.equal(joined.exitCode, null);
});

test('a tab that stood still is left out, says so when it wakes, and comes back', async (context) => {
  // This test has a browser of its own, because it stops the processes of its pages, like a phone that goes to sleep.
  const sleeper = await startChromium();
  context.after(() => sleeper.close());
  const { served, tabs } = await begin(context, { ranks: 1, browsers: 1, steps: 100_000, heartbeatTimeout: 2000 }, sleeper);
  const [page] = tabs as [Page];
  const headlines = await headlinesOf(page);
  const devtools = await sleeper.newBrowserCDPSession();
  const { processInfo } = await devtools.send('SystemInfo.getProcessInfo');
  const renderers = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
  for (const id of renderers) process.kill(id, 'SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 6500));
  for (const id of renderers) process.kill(id, 'SIGCONT');
  await trainsOn(served, page, 3);
  assert.ok(headlines.includes('This tab was left out while it was away'), headlines.join('; '));
  assert.match(served.text, /1 of 2 ranks go on/);
  assert.ok(served.runs);
});

test('tabs that come and go at random never end the training, nor do native ranks', async (context) => {
  const seed = Number(process.env['RINGLET_SEED'] ?? Date.now() % 1_000_000);
  console.log(`RINGLET_SEED=${seed}`);
  let state = seed;
  // The numerical recipes' generator is random enough to choose among tabs.
  const below = (limit: number): number => Math.floor(((state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32) * limit);
  const { served, link, tabs } = await begin(context, { ranks: 4, browsers: 4, steps: 1_000_000 });
  const counts = { opened: 0, closed: 0, reloaded: 0, frozen: 0, killed: 0 };
  const until = performance.now() + soakSeconds * 1000;
  const killTimes = [0.4, 0.7].map((part) => until - part * soakSeconds * 1000).sort((one, other) => one - other);
  while (performance.now() < until) {
    assert.ok(served.runs, served.text);
    const at = below(Math.max(tabs.length, 1));
    const page = tabs[at];
    const action = tabs.length < 2 ? 0 : below(tabs.length < 4 ? 4 : 3) + (tabs.length < 4 ? 0 : 1);
    if (action === 0) {
      tabs.push((await openTab(context, link)).page);
      ++counts.opened;
    } else if (action === 1) {
      await page?.context().close();
      tabs.splice(at, 1);
      ++counts.closed;
    } else if (action === 2) {
      await page?.reload();
      ++counts.reloaded;
    } else {
      const devtools = await page?.context().newCDPSession(page);
      await devtools?.send('Page.setWebLifecycleState', { state: 'frozen' });
      await new Promise((resolve) => setTimeout(resolve, 500));
      await devtools?.send('Page.setWebLifecycleState', { state: 'active' });
      ++counts.frozen;
    }
    if (performance.now() > (killTimes[0] ?? Infinity)) {
      killTimes.shift();
      // Rank 0 first, then the one that is rank 0 after it.
      served.kill(counts.killed++);
    }
    await new Promise((resolve) => setTimeout(resolve, below(2000)));
  }
  // All that are left train together, with the same parameters: the ranks compare these every five steps, and end where they differ.
  for (const page of tabs) await trainsOn(served, page, 12);
  for (const [at, page] of tabs.entries()) await screenshot(page, `coming-and-going-tab${at}`);
  assert.ok(served.runs, served.text);
  assert.ok(counts.killed === 2, 'two native ranks were killed');
  console.log(JSON.stringify(counts), served.text.match(/ranks go on/g)?.length ?? 0, 'changes');
});
