import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFinal } from '../../page/final.js';
import type { TrainingFailure } from '../../page/news.js';

// One native rank and three tabs, of which this one is rank 2.
const seat = { rank: 2, size: 4, guests: 3, elastic: true, epoch: 1 };
const isEnd = (part: Partial<TrainingFailure>, where: typeof seat | null = seat, disagreements = 1): boolean =>
  isFinal({ code: 'peer_lost', message: 'text', rank: -1, during: 'training', slept: false, ...part }, where ?? undefined, disagreements);

test('a tab stops where it is the one that does something else, and comes again where another tab is', () => {
  for (const [rank, isOwn] of [
    [-1, true],
    [0, true],
    [1, false],
    [2, true],
    [3, false],
  ] as const)
    assert.equal(isEnd({ code: 'mismatch', rank }), isOwn, `rank ${rank}`);
  // Then it is rather this one.
  assert.ok(!isEnd({ code: 'mismatch', rank: 3 }, seat, 2));
  assert.ok(isEnd({ code: 'mismatch', rank: 3 }, seat, 3));
  // What joining has said is final, whoever is named.
  for (const during of ['looking', 'waiting', 'returning'] as const) assert.ok(isEnd({ code: 'mismatch', rank: 3, during }));
  assert.ok(isEnd({ code: 'mismatch', rank: 3 }, null));
});

test('a group of another version is left alone, and one that breaks the protocol later is joined again', () => {
  for (const during of ['looking', 'returning'] as const) assert.ok(isEnd({ code: 'protocol_error', during }));
  for (const during of ['waiting', 'training'] as const) assert.ok(!isEnd({ code: 'protocol_error', rank: 0, during }));
});

test('what passes is tried again, and what does not is told', () => {
  for (const code of ['peer_lost', 'timed_out', 'cancelled'] as const) assert.ok(!isEnd({ code, rank: 0 }));
  assert.ok(isEnd({ code: 'io_error' }));
});
