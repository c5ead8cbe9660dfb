import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

/** The folder of the screenshots. */
export const screenshots = resolve(process.env['RINGLET_SCREENSHOTS'] ?? 'build/screenshots');

/** Window sizes of a small phone and of a desktop. */
export const phone = { width: 360, height: 740 };
export const desktop = { width: 1280, height: 900 };

/** Starts the system's Chromium without a window. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['RINGLET_CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** A page whose console messages are recorded. */
export interface WatchedPage {
  readonly page: Page;
  /** The console's errors and warnings, and exceptions that nobody caught. */
  readonly complaints: string[];
}

/** Opens an empty page in a browser context of its own. */
export async function openPage(browser: Browser, options: Parameters<Browser['newContext']>[0] = {}): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('requestfailed', (request) => complaints.push(`request failed: ${request.url()}`));
  return { page, complaints };
}

/** Saves a picture of the whole page. */
export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot({ path: resolve(screenshots, `${name}.png`), fullPage: true });
}
