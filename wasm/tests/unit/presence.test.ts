import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { watchPresence } from '../../page/presence.js';
import { FakePage } from './fake_page.js';

test('a page that was opened in the background says so, and for how long', () => {
  mock.timers.enable({ apis: ['Date'], now: 1_795_936_860_000 });
  const page = new FakePage('hidden');
  const notes: string[] = [];
  watchPresence((text) => notes.push(text));
  assert.match(notes.join('|'), /^This tab is in the background\./);
  mock.timers.tick(5000);
  page.turn('visible');
  assert.match(notes.at(-1) ?? '', /in the background for 5 seconds/);
  page.turn('hidden');
  mock.timers.tick(2000);
  page.turn('visible');
  assert.equal(notes.at(-1), '');
  mock.timers.reset();
});

test('a page that was opened in front has nothing to say', () => {
  new FakePage('visible');
  watchPresence(() => assert.fail());
});
