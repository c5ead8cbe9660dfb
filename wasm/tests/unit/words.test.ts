import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrainingFailure } from '../../page/news.js';
import { isRelayed, ringText } from '../../page/view/ring.js';
import { browserName, bytesText, explain, explainReturn } from '../../page/view/words.js';

const failure = (part: Partial<TrainingFailure>): TrainingFailure => ({
  code: 'peer_lost',
  message: 'text',
  rank: -1,
  during: 'training',
  slept: false,
  ...part,
});

test('each failure is told in plain words, with what to do', () => {
  const headline = (part: Partial<TrainingFailure>, mine = 3, offline = false): string => explain(failure(part), mine, offline).headline;
  assert.equal(headline({ rank: 2 }), 'Rank 2 was lost');
  assert.equal(headline({ rank: 2, code: 'timed_out' }), 'Rank 2 was lost');
  assert.equal(headline({ rank: 3 }), 'This tab was away for too long');
  assert.equal(headline({ rank: 0, slept: true }), 'This tab was away for too long');
  assert.equal(headline({ rank: 0 }, 3, true), 'This tab was away for too long');
  assert.equal(headline({ rank: 3, code: 'protocol_error' }), 'The training stopped');
  assert.equal(headline({ code: 'invalid_argument' }), 'This tab cannot train on');
  assert.equal(headline({ code: 'io_error', slept: true }), 'This tab has failed');
  assert.equal(headline({ code: 'io_error', rank: 1 }), 'The training stopped');
  assert.equal(headline({ code: 'cancelled' }), 'The training was stopped');
  assert.equal(headline({ code: 'mismatch' }), 'The ranks do not fit together');
  assert.equal(headline({ code: 'mismatch', rank: 3, slept: true }, 3, true), 'The ranks do not fit together');
  assert.equal(headline({ during: 'returning', code: 'mismatch' }), 'The ranks do not fit together');
  assert.equal(headline({ during: 'returning', code: 'protocol_error' }), 'The ranks do not fit together');
  assert.equal(headline({ during: 'looking', code: 'protocol_error' }, -1), 'The ranks do not fit together');
  assert.equal(headline({ during: 'looking', code: 'invalid_argument' }, -1), 'The group takes no more tabs');
  assert.equal(headline({ during: 'looking' }, -1), 'The group cannot be reached');
  assert.equal(headline({ during: 'looking', code: 'timed_out' }, -1), 'The group cannot be reached');
  assert.equal(headline({ during: 'waiting', code: 'timed_out' }, -1), 'Not everybody came in time');
  const wrong = explain(failure({ during: 'looking', code: 'authentication' }), -1, false);
  assert.deepEqual([wrong.askForToken, wrong.mayTryAgain], [true, false]);
  assert.match(explain(failure({ rank: 2 }), 3, false).advice, /start it again, then join again/);
});

test('a tab that joins again says why', () => {
  const headline = (part: Partial<TrainingFailure>, offline = false): string => explainReturn(failure(part), 3, offline).headline;
  assert.equal(headline({ rank: 2 }), 'Rank 2 has left');
  assert.equal(headline({ rank: 2, slept: true }), 'This tab was left out while it was away');
  assert.equal(headline({ rank: 3 }), 'This tab was left out while it was away');
  assert.equal(headline({ rank: 0 }, true), 'This tab was left out while it was away');
  assert.equal(headline({ code: 'mismatch', rank: 2, slept: true }), 'Rank 2 and this tab do not fit together');
  assert.equal(headline({ code: 'cancelled' }), 'Others are joining');
  assert.equal(headline({ during: 'waiting', rank: 2 }), 'The connection broke');
  const ended = explain(failure({ during: 'returning', code: 'timed_out' }), -1, false);
  assert.equal(ended.headline, 'The training cannot be reached any more');
});

test('bytes are told with three digits', () => {
  assert.deepEqual([0, 999, 1000, 12_345, 999_600, 123_456_789].map(bytesText), [
    '0 B',
    '999 B',
    '1.00 KB',
    '12.3 KB',
    '1.00 MB',
    '123 MB',
  ]);
});

test('the ring is told in a sentence, and browsers beside each other are relayed', () => {
  const picture = { order: [0, 2, 1, 3], guests: 2, mine: 2, lost: -1 };
  assert.equal(ringText(picture), 'This tab is rank 2 of 4, between rank 0 and rank 1. 2 native ranks, 2 browsers.');
  assert.equal(
    ringText({ order: [0, 1], guests: 1, mine: 1, lost: -1 }),
    'This tab is rank 1 of 2, beside rank 0. 1 native rank, 1 browser.',
  );
  assert.equal(isRelayed(2, 3, picture), true);
  assert.equal(isRelayed(2, 1, picture), false);
});

test('browsers are named', () => {
  const linux = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0 Safari/537.36';
  assert.equal(browserName(linux), 'Chromium on Linux');
  assert.equal(
    browserName('Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605 Version/17.0 Mobile/15E Safari/604.1'),
    'Safari on an iPhone',
  );
  assert.equal(browserName('Mozilla/5.0 (Android 14; Mobile; rv:120.0) Gecko/120.0 Firefox/120.0'), 'Firefox on Android');
  assert.equal(browserName(''), 'a browser');
});
