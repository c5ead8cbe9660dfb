import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { desktop, openPage, phone, screenshot, startChromium } from './chromium.js';
import { servePage } from './page_server.js';
import { scriptedWorker } from './scripted_worker.js';

// Tests the page without a core: a script plays the part of its Worker.
const folder = resolve(process.env['RINGLET_PAGE'] ?? 'build/page');
let browser: Browser;
let stop: () => void;
let url: string;

before(async () => {
  browser = await startChromium();
  ({ stop, url } = await servePage(folder, { 'worker.js': scriptedWorker }));
});

after(async () => {
  await browser.close();
  stop();
});

const text = (page: Page, id: string): Promise<string> => page.locator(`#${id}`).innerText();

test('page and module together are less than 500 KB to download', (context) => {
  const sizes = readdirSync(folder).map((name) => gzipSync(readFileSync(resolve(folder, name))).length);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  context.diagnostic(`${bytes} bytes, compressed`);
  assert.ok(bytes < 500_000, `${bytes} bytes`);
});

/** Whether the page is no wider than the window. */
async function fits(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
}

test('training is shown in words, numbers, a ring and a chart, on a phone and on a desktop, in light and in dark', async () => {
  for (const [name, viewport] of Object.entries({ phone, desktop })) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, complaints } = await openPage(browser, { viewport, colorScheme, hasTouch: name === 'phone' });
      await page.goto(`${url}#token=training`);
      await page.locator('#chart canvas').waitFor();
      await page.locator('#sample').waitFor();
      assert.equal(await text(page, 'headline'), 'Training');
      assert.match(await text(page, 'detail'), /112,896 parameters, 200 steps of 16 samples, an average every 25 steps\. Keep/);
      assert.equal(await text(page, 'step'), '120 of 200');
      assert.equal(await text(page, 'tokens'), '12,465');
      assert.equal(await text(page, 'share'), '3 of 16');
      assert.equal(await text(page, 'communication'), '13 %');
      assert.equal(await text(page, 'sent'), '148 MB');
      assert.match(await text(page, 'ring-text'), /rank 2 of 4, between rank 0 and rank 1\. 2 native ranks, 2 browsers/);
      assert.equal(await page.locator('#ring rect').count(), 2);
      assert.match(await text(page, 'chart-text'), /Loss of the training: 4\.\d+ at first, 2\.\d+ now\. Of the validation: 2\.\d+/);
      assert.match(await text(page, 'text'), /KING:\nWhat say you/);
      assert.ok(await fits(page));
      assert.equal(await page.title(), 'training – Ringlet');
      await screenshot(page, `training-${name}-${colorScheme}`);
      assert.deepEqual(complaints, []);
      await page.context().close();
    }
  }
});

test('a tab that comes to a training that runs shows its step, and no loss as long as none is known', async () => {
  const { page } = await openPage(browser, { viewport: phone });
  await page.goto(`${url}#token=late`);
  await page.getByText('No loss is known yet').waitFor({ timeout: 10_000 });
  assert.equal(await text(page, 'step'), '120 of 200');
  await page.context().close();
});

test('a group that has gone back to an earlier state loses what came after it from the chart', async () => {
  const { page } = await openPage(browser, { viewport: phone });
  await page.goto(`${url}#token=back`);
  await page.getByText('9.000 now. Of the validation: 2.267.').waitFor({ timeout: 10_000 });
  assert.equal(await text(page, 'step'), '81 of 200');
  await page.context().close();
});

test('all steps are done at the end, also those that this tab has left to the others', async () => {
  const { page } = await openPage(browser, { viewport: phone });
  await page.goto(`${url}#token=finished`);
  await page.getByRole('heading', { name: 'Finished' }).waitFor();
  assert.equal(await text(page, 'step'), '200 of 200');
  await page.context().close();
});

test('the token is taken out of the address bar, and kept for a reload', async () => {
  const { page, complaints } = await openPage(browser, { viewport: phone });
  await page.goto(`${url}#token=waiting`);
  await page.getByText('2 of 4 are here').waitFor();
  assert.equal(page.url(), url);
  await page.reload();
  await page.getByText('2 of 4 are here').waitFor();
  await screenshot(page, 'waiting-phone');
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('without a token the page asks for it, and asks again where it is wrong', async () => {
  const { page, complaints } = await openPage(browser, { viewport: phone });
  await page.goto(url);
  await page.getByText('This page needs the token of the group').waitFor();
  await page.getByLabel('Token of the group').fill('something else');
  await page.getByRole('button', { name: 'Join' }).click();
  await page.getByText('The token is not the one of this group').waitFor();
  await screenshot(page, 'wrong-token-phone');
  assert.ok(await fits(page));
  await page.getByLabel('Token of the group').fill(' waiting ');
  await page.keyboard.press('Enter');
  await page.getByText('2 of 4 are here').waitFor();
  assert.equal(await page.getByLabel('Token of the group').isVisible(), false);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('a lost rank is named, marked in the ring, and one may join again', async () => {
  const { page, complaints } = await openPage(browser, { viewport: phone });
  await page.goto(`${url}#token=lost`);
  await page.getByText('Rank 1 was lost').waitFor();
  assert.equal(await page.locator('#ring .lost').count(), 1);
  assert.equal(await text(page, 'state'), 'stopped');
  await screenshot(page, 'lost-phone');
  await page.getByRole('button', { name: 'Join again' }).click();
  await page.getByText('Rank 1 was lost').waitFor();
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('a tab whose Worker fails while it trains says so', async () => {
  const { page } = await openPage(browser, { viewport: phone });
  await page.goto(`${url}#token=crashes`);
  await page.getByRole('button', { name: 'Join again' }).waitFor();
  assert.equal(await text(page, 'headline'), 'This tab has failed');
  assert.match(await text(page, 'detail'), /out of memory/);
  await page.context().close();
});

test('what a tab needs to take part is said while it does', async () => {
  const { page } = await openPage(browser, { viewport: phone });
  for (const [token, isShown] of [
    ['training', true],
    ['finished', false],
    ['lost', false],
  ] as const) {
    await page.goto('about:blank');
    await page.goto(`${url}#token=${token}`);
    await page.locator('#sample').waitFor();
    await page.context().setOffline(true);
    const note = page.locator('#note', { hasText: 'This device has no network now' });
    await note.waitFor({ state: 'attached' });
    assert.equal(await note.isVisible(), isShown, token);
    await page.context().setOffline(false);
  }
  await page.context().close();
});

test('a complete group is told as such', async () => {
  const { page } = await openPage(browser, { viewport: phone });
  await page.goto(`${url}#token=complete`);
  await page.getByRole('heading', { name: 'The group takes no more tabs' }).waitFor();
  assert.ok(await page.getByRole('button', { name: 'Join again' }).isVisible());
  await page.context().close();
});

test('leaving is warned of while training goes on, and not after it', async () => {
  const { page } = await openPage(browser, { viewport: phone });
  for (const [token, expected] of [
    ['training', 1],
    ['finished', 0],
  ] as const) {
    await page.goto('about:blank');
    await page.goto(`${url}#token=${token}`);
    await page.locator('#sample').waitFor();
    // Browsers ask before leaving only on pages that the user has interacted with.
    await page.locator('#text').click();
    let asked = 0;
    const accept = (dialog: import('playwright-core').Dialog): void => {
      ++asked;
      void dialog.accept();
    };
    page.on('dialog', accept);
    await page.reload();
    page.off('dialog', accept);
    assert.equal(asked, expected, token);
  }
  await page.context().close();
});

test('all controls have names, and what changes is announced', async () => {
  const { page } = await openPage(browser, { viewport: phone });
  await page.goto(`${url}#token=training`);
  await page.locator('#sample').waitFor();
  const status = page.getByRole('status');
  assert.match(await status.innerText(), /Training/);
  assert.equal(await page.getByRole('progressbar', { name: 'Training steps done' }).getAttribute('value'), '120');
  assert.equal(await page.getByRole('img', { name: /This tab is rank 2/ }).count(), 1);
  assert.equal(await page.getByRole('img', { name: /Loss of the training/ }).count(), 1);
  await page.context().close();
});
