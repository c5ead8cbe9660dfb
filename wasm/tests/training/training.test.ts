import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { after, before, test as nodeTest, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { desktop, openPage, phone, screenshot, startChromium, type WatchedPage } from '../browser/chromium.js';
import { servePage } from '../browser/page_server.js';
import { headline } from './sees.js';
import { pageFolder, Served, type ServeOptions } from './served.js';

// The timeout is long enough for a machine that is busy with other things.
const test = (name: string, run: (context: TestContext) => Promise<void>): unknown => nodeTest(name, { timeout: 240_000 }, run);

let browser: Browser;
before(async () => {
  browser = await startChromium();
});
after(() => browser.close());

interface Setting {
  readonly served: Served;
  readonly tabs: readonly WatchedPage[];
}

/** Starts native ranks and as many tabs as they wait for; all are ended with the test. */
async function begin(context: TestContext, options: ServeOptions, where = browser): Promise<Setting> {
  const served = Served.start(options);
  context.after(() => served.stop());
  const link = await served.link();
  const tabs: WatchedPage[] = [];
  for (let tab = 0; tab < options.browsers; ++tab) {
    const opened = await openPage(where, { viewport: tab === 0 ? phone : desktop });
    context.after(() => opened.page.context().close());
    await opened.page.goto(link);
    tabs.push(opened);
  }
  return { served, tabs };
}

/** Waits until some steps have been taken. */
const underWay = (page: Page): Promise<void> => page.locator('#step', { hasText: /^[1-9]\d* of/ }).waitFor({ timeout: 60_000 });
const noComplaints = (tabs: readonly WatchedPage[]): void => tabs.forEach(({ complaints }) => assert.deepEqual(complaints, []));

/** An interpreter that has the package ringlet: the one named by RINGLET_PYTHON, or the first of those that scripts/wheel has tested with. */
function pythonWithRinglet(): string | undefined {
  const named = process.env['RINGLET_PYTHON'];
  if (named !== undefined) return named;
  const built = existsSync('build/python') ? readdirSync('build/python') : [];
  const interpreters = built.filter((name) => name.startsWith('test-')).map((name) => `build/python/${name}/bin/python`);
  return interpreters.find((path) => existsSync(path));
}

const python = pythonWithRinglet();
const noPython = python === undefined && 'no Python has ringlet: run scripts/wheel, or name an interpreter by RINGLET_PYTHON';

type Report = Awaited<ReturnType<Served['report']>>;

async function trainsToTheEnd(context: TestContext, options: ServeOptions, name: string): Promise<Report> {
  const { served, tabs } = await begin(context, options);
  for (const { page } of tabs) await underWay(page);
  await Promise.all(tabs.map(({ page }, tab) => screenshot(page, `${name}-training-tab${tab}`)));
  const details = await Promise.all(
    tabs.map(async ({ page }) => {
      await headline(served, page, 'Finished');
      return page.locator('#detail').innerText();
    }),
  );
  assert.equal(await served.exitCode, 0, served.text);
  const report = await served.report();
  assert.equal(report['ranks'], options.ranks + options.browsers);
  for (const detail of details) assert.ok(detail.includes(String(report['parameter_hash'])), `${detail}\n${JSON.stringify(report)}`);
  assert.ok(Number(report['val_loss_last']) < 0.8 * Number(report['val_loss_first']), JSON.stringify(report));
  for (const { page } of tabs) {
    assert.notEqual(await page.locator('#text').innerText(), '');
    assert.equal(await page.locator('#step').innerText(), `${options.steps} of ${options.steps}`);
  }
  await Promise.all(tabs.map(({ page }, tab) => screenshot(page, `${name}-finished-tab${tab}`)));
  noComplaints(tabs);
  return report;
}

test('two native ranks and two tabs train one model', async (context) => {
  const report = await trainsToTheEnd(context, { ranks: 2, browsers: 2, steps: 40 }, '2-natives-2-tabs');
  assert.equal(report['averages'], undefined);
});

test('one native rank and three tabs train one model, some links relayed', async (context) => {
  await trainsToTheEnd(context, { ranks: 1, browsers: 3, steps: 40 }, '1-native-3-tabs');
});

test('two native ranks and two tabs train with few averages, as four native ranks do', async (context) => {
  const options = { steps: 100, more: ['--inner-steps', '10', '--shares', 'even'] };
  const natives = Served.start({ ranks: 4, browsers: 0, ...options });
  context.after(() => natives.stop());
  const expected = await natives.report();
  const report = await trainsToTheEnd(context, { ranks: 2, browsers: 2, ...options }, 'few-averages');
  assert.deepEqual([report['averages'], expected['averages'], report['mode']], [10, 10, 'outer']);
  const [loss, wanted] = [Number(report['val_loss_last']), Number(expected['val_loss_last'])];
  // Tabs compute the last bits of their gradients in another way.
  assert.ok(Math.abs(loss - wanted) < 0.02 * wanted, `${loss}, natives alone ${wanted}`);
});

test('tabs train with few averages by fragments that overlap, in blocks, and take steps as they can', async (context) => {
  const how = ['--inner-steps', '20', '--fragments', '2', '--overlap', '3', '--wire', 'int8'];
  const report = await trainsToTheEnd(context, { ranks: 1, browsers: 2, steps: 200, more: how }, 'few-averages-int8');
  assert.equal(report['averages'], 20);
});

test('tabs train with few averages in a training that is not elastic', async (context) => {
  const options = { ranks: 1, browsers: 1, steps: 60, elastic: false, more: ['--inner-steps', '10'] };
  const report = await trainsToTheEnd(context, options, 'few-averages-no-elastic');
  assert.equal(report['averages'], 6);
});

const inPython = (steps: number): string[] => {
  const shape = ['--batch', '9', '--layers', '1', '--width', '32', '--context', '32'];
  return [python ?? '', 'examples/python/train_text.py', 'README.md', '--steps', String(steps), ...shape];
};

nodeTest('a program in Python and two tabs train one model', { timeout: 240_000, skip: noPython }, async (context) => {
  await trainsToTheEnd(context, { ranks: 1, browsers: 2, steps: 40, elastic: false, program: inPython(40) }, 'python-2-tabs');
});

nodeTest('two ranks of a program in Python and a tab train with few averages', { timeout: 240_000, skip: noPython }, async (context) => {
  const program = [...inPython(100), '--inner-steps', '10'];
  const report = await trainsToTheEnd(context, { ranks: 2, browsers: 1, steps: 100, elastic: false, program }, 'python-few-averages');
  assert.equal(report['averages'], 10);
});

test('in a training that is not elastic a tab that is closed ends it for all, who are told its rank', async (context) => {
  const { served, tabs } = await begin(context, { ranks: 2, browsers: 2, steps: 100_000, elastic: false });
  const [stays, goes] = tabs as [WatchedPage, WatchedPage];
  await underWay(goes.page);
  const rank = /This tab is rank (\d+)/.exec(await goes.page.locator('#ring-text').innerText())?.[1];
  await goes.page.context().close();
  await headline(served, stays.page, `Rank ${rank} was lost`);
  assert.notEqual(await served.exitCode, 0);
  assert.match(served.text, new RegExp(`rank ${rank}\\b`));
  await screenshot(stays.page, 'a-tab-was-closed');
  noComplaints([stays]);
});

test('in a training that is not elastic a tab that is reloaded cannot come back, and says so', async (context) => {
  const { served, tabs } = await begin(context, { ranks: 1, browsers: 1, steps: 100_000, elastic: false });
  const [{ page }] = tabs as [WatchedPage];
  await underWay(page);
  const link = await served.link();
  let warnings = 0;
  page.on('dialog', (dialog) => {
    ++warnings;
    void dialog.accept();
  });
  // The files may load or not, because the rank that serves them is about to end.
  await page.reload({ waitUntil: 'commit' }).catch(() => undefined);
  assert.equal(warnings, 1);
  assert.notEqual(await served.exitCode, 0);
  assert.match(served.text, /rank 1\b/);
  // Serving the same files elsewhere stands for a page that comes from the browser's cache.
  const files = await servePage(pageFolder, {}, Number(new URL(link).port));
  context.after(() => files.stop());
  await page.goto(link);
  await page.reload();
  await headline(served, page, 'The group cannot be reached');
  await page.getByRole('button', { name: 'Join again' }).waitFor();
});

test('in a training that is not elastic a tab that stands still ends it, and explains itself when it wakes up', async (context) => {
  // This test has a browser of its own, because it stops the processes of its pages, like a phone that goes to sleep.
  const sleeper = await startChromium();
  context.after(() => sleeper.close());
  const { served, tabs } = await begin(context, { ranks: 1, browsers: 1, steps: 100_000, heartbeatTimeout: 2000, elastic: false }, sleeper);
  const [{ page }] = tabs as [WatchedPage];
  await underWay(page);
  const devtools = await sleeper.newBrowserCDPSession();
  const { processInfo } = await devtools.send('SystemInfo.getProcessInfo');
  const renderers = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id);
  for (const id of renderers) process.kill(id, 'SIGSTOP');
  assert.notEqual(await served.exitCode, 0);
  assert.match(served.text, /rank 1\b/);
  for (const id of renderers) process.kill(id, 'SIGCONT');
  await headline(served, page, 'This tab was away for too long');
  await screenshot(page, 'a-tab-stood-still');
});

test('training goes on in a tab that is in the background', async (context) => {
  const { served, tabs } = await begin(context, { ranks: 1, browsers: 1, steps: 60, heartbeatTimeout: 2000 });
  const [{ page, complaints }] = tabs as [WatchedPage];
  await underWay(page);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
  assert.equal(await served.exitCode, 0, served.text);
  await devtools.send('Page.setWebLifecycleState', { state: 'active' });
  await headline(served, page, 'Finished');
  assert.deepEqual(complaints, []);
});

test('a device without network says so', async (context) => {
  const { tabs } = await begin(context, { ranks: 1, browsers: 1, steps: 100_000, heartbeatTimeout: 2000 });
  const [{ page }] = tabs as [WatchedPage];
  await underWay(page);
  await page.context().setOffline(true);
  await page.getByText('This device has no network now').waitFor({ timeout: 60_000 });
});

test('a wrong token is refused, and the group goes on waiting for the right one', async (context) => {
  const served = Served.start({ ranks: 1, browsers: 1, steps: 10 });
  context.after(() => served.stop());
  const link = await served.link();
  const { page, complaints } = await openPage(browser, { viewport: phone });
  context.after(() => page.context().close());
  await page.goto(link.replace(/#.*/, '#token=somebody-elses'));
  await headline(served, page, 'The token is not the one of this group');
  await page.getByLabel('Token of the group').fill(link.replace(/.*#token=/, ''));
  await page.getByRole('button', { name: 'Join' }).click();
  await headline(served, page, 'Finished');
  assert.equal(await served.exitCode, 0, served.text);
  assert.deepEqual(complaints, []);
});
