import assert from 'node:assert/strict';
import { test } from 'node:test';
import { strongToken } from '../../src/core/strong_token.js';

test('a token that a person made up is stretched as native ranks do, and one of `ringlet token` stays', () => {
  // tests/native/token_test.cpp has the same value.
  assert.equal(strongToken('sixteen letters!'), 'nvq8-dya5-dn6b-m03g-12s8-xv7r-sxr1');
  const made = '4n7x-0c5r-9pqa-te2v-hm8j-w3ky-bz16';
  assert.equal(strongToken(made), made);
  assert.equal(strongToken(strongToken('sixteen letters!')), strongToken('sixteen letters!'));
  assert.notEqual(strongToken('0000-0000-0000-0000-0000-0000-0000'), '0000-0000-0000-0000-0000-0000-0000');
  assert.equal(strongToken(''), '');
});
