import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { keepAwake } from '../../page/keep_awake.js';
import { FakePage } from './fake_page.js';

/** What the browser has been asked for, and how many locks it holds; it ends them in the background. */
const screen = { requests: 0, held: 0, refuses: false };
let page: FakePage;

async function request(): Promise<{ release(): Promise<void> }> {
  ++screen.requests;
  if (screen.refuses) throw new Error('the battery is low');
  let isHeld = true;
  ++screen.held;
  const release = async (): Promise<void> => {
    if (isHeld) --screen.held;
    isHeld = false;
  };
  page.addEventListener('visibilitychange', () => page.visibilityState === 'hidden' && void release());
  return { release };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  Object.assign(screen, { requests: 0, held: 0, refuses: false });
  page = new FakePage('visible');
  Object.defineProperty(globalThis, 'navigator', { value: { wakeLock: { request } }, configurable: true });
});

test('the screen stays on until it is not wanted any more, however often the group has changed', async () => {
  for (let epoch = 0; epoch < 5; ++epoch) keepAwake(true);
  await settled();
  assert.deepEqual([screen.requests, screen.held], [1, 1]);
  keepAwake(false);
  await settled();
  assert.equal(screen.held, 0);
  page.turn('hidden');
  page.turn('visible');
  await settled();
  assert.equal(screen.requests, 1);
});

test('a tab that comes back to the front asks once more, and never holds two', async () => {
  keepAwake(true);
  await settled();
  page.turn('hidden');
  page.turn('visible');
  await settled();
  assert.deepEqual([screen.requests, screen.held], [2, 1]);
  // It is back before the browser has answered.
  page.turn('visible');
  page.turn('visible');
  await settled();
  assert.equal(screen.held, 1);
  keepAwake(false);
  await settled();
  assert.equal(screen.held, 0);
});

test('what ends before the browser has answered, or is refused, leaves nothing', async () => {
  keepAwake(true);
  keepAwake(false);
  await settled();
  assert.deepEqual([screen.requests, screen.held], [1, 0]);
  screen.refuses = true;
  keepAwake(true);
  await settled();
  keepAwake(false);
  Object.defineProperty(globalThis, 'navigator', { value: {}, configurable: true });
  keepAwake(true);
  keepAwake(false);
  await settled();
  assert.equal(screen.held, 0);
});
