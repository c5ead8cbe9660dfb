// Waiting for what a tab shows.
import type { Page } from 'playwright-core';
import type { Served } from './served.js';

/** Waits for `shown`; where it does not come, the error says what there is instead. */
export async function sees(
  served: Served,
  page: Page,
  what: string,
  shown: (options: { timeout: number }) => Promise<unknown>,
): Promise<void> {
  try {
    await shown({ timeout: 120_000 });
  } catch (error) {
    const text = await page.locator('body').innerText();
    throw new Error(`a tab does not ${what}; it shows: ${text}\nThe native ranks said: ${served.text}`, { cause: error });
  }
}

/** Waits for the page's headline. */
export const headline = (served: Served, page: Page, text: string): Promise<void> =>
  sees(served, page, `come to '${text}'`, (options) => page.getByRole('heading', { name: text }).waitFor(options));
